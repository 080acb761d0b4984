//===- overlapped_reduces_test.cpp - Gradients reduced beside backward ----===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/overlapped_reduces.h"
#include "codegen/streams.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/runtime/plan/pipeline_plan.h"
#include "tests/tools/planning.h"
#include "tools/executable.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::IsEmpty;

/// "program: label label", of those that have any.
std::vector<std::string> overlappedOf(const Stage &stage) {
  std::vector<std::string> all;
  for (const Program &program : stage.programs) {
    std::string line = program.name + ":";
    for (const Instruction &one : program.instructions)
      if (one.overlapped)
        line += " " + one.label;
    if (!line.ends_with(":"))
      all.push_back(line);
  }
  return all;
}

std::vector<std::string> reducedAfter(const Stage &stage) {
  std::vector<std::string> all;
  for (const ScheduleEntry &entry : stage.reduce)
    for (const Instruction &one :
         stage.programs[static_cast<std::size_t>(entry.program)].instructions)
      if (std::holds_alternative<Collective>(one.what))
        all.push_back(one.label);
  return all;
}

TEST(OverlappedReduces, FollowTheLastGradient) {
  Plan plan = twoReplicas();
  codegen::overlapReduces(plan);
  codegen::assignStreams(plan);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
  EXPECT_THAT(overlappedOf(plan.stages[0]),
              ElementsAre("fc.backward: fc.weight"));
  EXPECT_THAT(plan.stages[0].reduce, IsEmpty());
  EXPECT_EQ(plan.stages[0].programs.size(), 3U);
  EXPECT_THAT(plan.stages[0].programs[1].instructions[2].waits, ElementsAre(1));
  const Plan again = parsePlan(planText(plan));
  EXPECT_EQ(planText(again), planText(plan));
  EXPECT_TRUE(again.stages[0].programs[1].instructions[2].overlapped);
}

// What is read again before the step's end stays where it was.
TEST(OverlappedReduces, StayBehindWhatIsAddedUpAgain) {
  Plan plan = twoReplicas();
  Stage &stage = plan.stages[0];
  Instruction add = stage.programs[1].instructions[1];
  std::get<KernelCall>(add.what).settings.clear();
  stage.programs[2].instructions.insert(stage.programs[2].instructions.begin(),
                                        add);
  codegen::overlapReduces(plan);
  EXPECT_THAT(overlappedOf(stage), IsEmpty());
  EXPECT_EQ(stage.programs.size(), 4U);
}

// Layers of a pipeline, tied weights, sums over stages, split state.
TEST(OverlappedReduces, OfAnyPlanFitTogether) {
  int moved = 0, left = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = randomPlan(seed);
    codegen::overlapReduces(plan);
    codegen::assignStreams(plan);
    EXPECT_THAT(checkPlan(plan), IsEmpty());
    for (const Stage &stage : plan.stages) {
      moved += static_cast<int>(overlappedOf(stage).size());
      left += static_cast<int>(reducedAfter(stage).size());
    }
  }
  EXPECT_GT(moved, 40);
  EXPECT_GT(left, 40);
}

Plan compiledExample(const std::string &model,
                     const std::function<void(tools::PlanRequest &)> &choose) {
  tools::PlanRequest request = tools::exampleRequest(model, 1);
  request.output = "run";
  request.overlaps.emplace().reduce = true;
  choose(request);
  const tools::PlanOutcome outcome = tools::planned(request);
  std::vector<std::string> errors;
  std::optional<Plan> plan =
      tools::executableOf(*outcome.problem, *outcome.best(), errors);
  if (!plan)
    throw std::runtime_error(testing::PrintToString(errors));
  EXPECT_THAT(checkPlan(*plan), IsEmpty());
  return std::move(*plan);
}

// Those of a layer run beside the layer before; the first to run waits for what
// comes last, and the others for nothing.
TEST(OverlappedReduces, OfALayerWaitOnce) {
  const Plan plan =
      compiledExample("tiny-gpt2", [](tools::PlanRequest &request) {
        request.gpus = request.dp = 2;
      });
  const Stage &stage = plan.stages[0];
  EXPECT_THAT(
      overlappedOf(stage),
      ElementsAre("embed.backward: wpe.weight",
                  "h.backward: h.*.ln_1.bias h.*.ln_1.weight h.*.attn.q.weight "
                  "h.*.attn.q.bias h.*.attn.k.weight h.*.attn.k.bias "
                  "h.*.attn.v.weight h.*.attn.v.bias h.*.attn.proj.weight "
                  "h.*.attn.proj.bias h.*.ln_2.bias h.*.ln_2.weight "
                  "h.*.mlp.fc1.weight h.*.mlp.fc1.bias h.*.mlp.fc2.weight "
                  "h.*.mlp.fc2.bias",
                  "head.backward: ln_f.bias ln_f.weight"));
  // The table is the head, too: both have a sum of their own.
  EXPECT_THAT(reducedAfter(stage), ElementsAre("wte.weight", "loss"));
  int waits = 0;
  for (const Program &program : stage.programs)
    if (program.name == "h.backward")
      for (const Instruction &one : program.instructions)
        waits += one.overlapped && !one.waits.empty() ? 1 : 0;
  EXPECT_EQ(waits, 1);
}

// Scattered gradients wait where activations are, which backward has use for.
TEST(OverlappedReduces, OfSplitStateStay) {
  const Plan plan =
      compiledExample("tiny-gpt2", [](tools::PlanRequest &request) {
        request.gpus = request.dp = 2;
        request.zeroStage = {{1}};
      });
  EXPECT_THAT(overlappedOf(plan.stages[0]), IsEmpty());
}

} // namespace
} // namespace mtplan
