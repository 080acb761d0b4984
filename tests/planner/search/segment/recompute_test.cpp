//===- recompute_test.cpp - What backward recomputes, and its memory ------===//

#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/segment/step_link.h"
#include "planner/search/space/segment_runs.h"
#include "planner/search/stage/stage_solver.h"
#include "tests/planner/cost/op_case.h"
#include "tests/planner/plain_times.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

// The segment is x -> attention -> y -> last product -> z, and backward reads x
// and y.
class RecomputeTest : public testing::Test {
protected:
  enum Tensors : int { kX, kY, kZ, kDz, kDx };

  RecomputeTest() {
    OpCase made = attentionCase(1, 8, 4, 1, 4, Phase::forward, true);
    segment.name = "h";
    segment.repeat = 2;
    for (const char *name : {"x", "y", "z", "dz", "dx"}) {
      Tensor tensor = made.tensors[0];
      tensor.name = name;
      tensor.phase = name[0] == 'd' ? Phase::backward : Phase::forward;
      segment.tensors.push_back(tensor);
    }
    Op core = made.op;
    for (Use &use : core.operands)
      use.tensor = kX;
    core.results[0].tensor = kY;
    Op last;
    last.factors = {{"b", 1, Split::batch, true, Reduction::sum, 0.0},
                    {"s", 8, Split::sequence, true, Reduction::sum, 0.0},
                    {"h", 16, Split::hidden, true, Reduction::sum, 0.0}};
    last.operands = {{kY, {0, 1, 2}, false}};
    last.results = {{kZ, {0, 1, 2}, false}};
    Op back = last;
    back.phase = Phase::backward;
    back.operands = {{kX, {0, 1, 2}, false},
                     {kY, {0, 1, 2}, false},
                     {kDz, {0, 1, 2}, false}};
    back.results = {{kDx, {0, 1, 2}, false}};
    segment.ops = {core, last, back};
    segment.carriedIn = {kX};
    segment.carriedOut = {kZ};
    segment.gradientIn = {kDz};
    segment.gradientOut = {kDx};
    model.segments = {segment};

    setting.mesh = meshOf(1, 1);
    setting.machine = &machine;
    setting.software = &software;
    software.attention.keepsScores = true;
    software.attention.scores = {3, 6, 28, 24, 5, 5, 4, 8};

    Layout replicated = Layout::replicated(3);
    plan.count = 2;
    plan.strategies.assign(3, Strategy{{kReplicated, kReplicated}});
    plan.made.assign(5, replicated);
    plan.saved.resize(5);
    plan.saved[kX] = plan.saved[kY] = replicated;
    plan.carriedIn = plan.carriedOut = plan.gradientIn =
        plan.gradientOut = {replicated};
  }

  std::vector<bool> again(Recompute recompute) {
    return recomputedOps(segment, recompute, software);
  }

  double backward(Recompute recompute) {
    setting.recompute = recompute;
    std::vector<bool> paid;
    return phaseTimesOf(model, plan, setting, paid).backward.compute.value;
  }

  double secondsOf(int op) const {
    return computeTime(segment.ops[static_cast<std::size_t>(op)],
                       plan.strategies[0], segment.tensors, setting.mesh,
                       machine, software, setting.precision)
        .value;
  }

  SegmentGraph segment;
  ModelGraph model;
  Machine machine = roundMachine();
  Software software;
  Setting setting;
  SegmentPlan plan;
};

using Flags = std::vector<bool>;

TEST_F(RecomputeTest, FullRepeatsForwardUpToTheLastValueRead) {
  EXPECT_EQ(again(Recompute::none), (Flags{false, false, false}));
  EXPECT_EQ(again(Recompute::selective), (Flags{true, false, false}));
  EXPECT_EQ(again(Recompute::full), (Flags{true, true, false}));
  software.stopsRecomputeEarly = true;
  EXPECT_EQ(again(Recompute::selective), (Flags{true, false, false}));
  // Nothing in backward reads z.
  EXPECT_EQ(again(Recompute::full), (Flags{true, false, false}));
  segment.ops[2].operands.push_back({kZ, {0, 1, 2}, false});
  EXPECT_EQ(again(Recompute::full), (Flags{true, true, false}));
  segment.repeat = 1;
  EXPECT_EQ(again(Recompute::full), (Flags{false, false, false}));
}

TEST_F(RecomputeTest, LayoutChangesOfSavedValuesAreNotRepeated) {
  auto tensors = [&](Recompute recompute) {
    Flags flags = recomputedTensors(segment, recompute, software);
    return Flags{flags[kX], flags[kY], flags[kZ]};
  };
  EXPECT_EQ(tensors(Recompute::none), (Flags{false, false, false}));
  EXPECT_EQ(tensors(Recompute::selective), (Flags{false, false, false}));
  EXPECT_EQ(tensors(Recompute::full), (Flags{true, true, true}));
  software.stopsRecomputeEarly = true;
  EXPECT_EQ(tensors(Recompute::full), (Flags{true, true, false}));
}

TEST_F(RecomputeTest, BackwardIncludesTheRecomputation) {
  double alone = backward(Recompute::none);
  EXPECT_DOUBLE_EQ(alone, secondsOf(2));
  EXPECT_DOUBLE_EQ(backward(Recompute::selective), alone + secondsOf(0));
  EXPECT_DOUBLE_EQ(backward(Recompute::full),
                   alone + secondsOf(0) + secondsOf(1));
  software.stopsRecomputeEarly = true;
  EXPECT_DOUBLE_EQ(backward(Recompute::full), alone + secondsOf(0));
}

// A repeat saves x and y, 8 x 16 elements of 2 bytes or 256 B each, and 4 x 8 x
// 8 scores of 5 bytes, or 1280 B. Two repeats have three micro-batches in
// flight.
TEST_F(RecomputeTest, ScoresAreSavedUnlessRecomputed) {
  setting.inFlight = 3;
  auto use = [&](Recompute recompute) {
    setting.recompute = recompute;
    return memoryOf(model, {plan}, setting);
  };
  MemoryUse none = use(Recompute::none);
  EXPECT_EQ(none.activations.value, 6 * (512 + 1280));
  MemoryUse selective = use(Recompute::selective);
  EXPECT_EQ(selective.activations.value, 6 * 512);
  EXPECT_EQ(selective.workspace.value, none.workspace.value + 1280);
  MemoryUse full = use(Recompute::full);
  EXPECT_EQ(full.activations.value, 6 * 256);
  EXPECT_EQ(full.workspace.value, none.workspace.value + 256 + 1280);
  software.attention.keepsScores = false;
  EXPECT_EQ(use(Recompute::none).activations.value, 6 * 512);
}

// The solver's tables have the times and bytes of the priced plan.
TEST_F(RecomputeTest, ChoiceProblemHasTheSameCosts) {
  setting.inFlight = 3;
  setting.microBatches = 5;
  setting.rules = {{{Split::batch}, false}, {{}, true}};
  for (Recompute recompute :
       {Recompute::none, Recompute::selective, Recompute::full})
    for (double share : {1.0, 0.25}) {
      setting.recompute = recompute;
      setting.recomputeShare = share;
      SegmentProblem problem = buildSegmentProblem(model, 0, setting, {});
      Assignment first(problem.link.problem.domains.size(), 0);
      for (int size : problem.link.problem.domains)
        ASSERT_EQ(size, 1);
      Cost cost = costOf(problem.link.problem, first);
      plan.count = 1;
      EXPECT_NEAR(stepTimeOf(model, {plan}, setting).step.value, cost.time,
                  1e-12 * cost.time);
      EXPECT_DOUBLE_EQ(memoryOf(model, {plan}, setting).activations.value,
                       cost.memory);
    }
}

} // namespace
} // namespace mtplan::planner
