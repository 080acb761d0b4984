//===- search_test.cpp - The optimum is the best part's plan --------------===//
//
// Each part of the space, one mesh and micro-batch or one choice of some
// operators, is searched alone. The best of these plans must be the optimum of
// the whole, in whatever order bounds excluded the parts.
//
//===----------------------------------------------------------------------===//

#include <limits>

#include "tests/tools/planning.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {
namespace {

PlanRequest wholeSpace(std::int64_t globalBatch) {
  PlanRequest request;
  request.model = MTPLAN_SOURCE_DIR "/examples/tiny-gpt2.json";
  request.hardware = "dgx-a100-80g";
  request.gpus = 8;
  request.globalBatch = globalBatch;
  request.splits = allSplits();
  return request;
}

// Returns the fastest step over all meshes and micro-batches, each planned
// alone.
double bestOfEach(const PlanRequest &request) {
  double best = std::numeric_limits<double>::infinity();
  for (int tp : {1, 2, 4, 8}) {
    std::int64_t perReplica = *request.globalBatch / (8 / tp);
    for (std::int64_t b = 1; b <= perReplica; ++b) {
      if (perReplica % b != 0)
        continue;
      PlanRequest part = request;
      part.tp = tp;
      part.microBatch = b;
      PlanOutcome outcome = plan(part);
      EXPECT_TRUE(outcome.errors.empty());
      if (outcome.best())
        best = std::min(best, outcome.best()->time.step.value);
    }
  }
  return best;
}

TEST(Search, FindsTheBestOfAllMeshesAndMicroBatches) {
  PlanRequest request = wholeSpace(16);
  PlanOutcome outcome = planned(request);
  EXPECT_TRUE(outcome.result.optimal);
  EXPECT_DOUBLE_EQ(outcome.best()->time.step.value, bestOfEach(request));
}

// The search finds the best plan that fits if the fastest one does not.
TEST(Search, FindsTheBestPlanThatFits) {
  PlanRequest request = wholeSpace(16);
  PlanOutcome free = planned(request);
  double reserved = free.best()->memory.reserved.value;
  double used = free.best()->memory.total().value - reserved;
  for (double share : {0.98, 0.9, 0.7}) {
    SCOPED_TRACE(share);
    request.memory = planner::Bytes{reserved + share * used};
    PlanOutcome outcome = planned(request);
    EXPECT_LE(outcome.best()->memory.total().value,
              request.memory->value * (1 + 1e-12));
    EXPECT_GE(outcome.best()->time.step, free.best()->time.step);
    EXPECT_GE(outcome.best()->time.step.value,
              outcome.result.lowerBound.value * (1 - 1e-9));
    double best = bestOfEach(request);
    EXPECT_LE(outcome.result.lowerBound.value, best * (1 + 1e-9));
    if (outcome.result.optimal) {
      EXPECT_LE(outcome.best()->time.step.value, best * (1 + 1e-9));
    }
  }
}

// The number of listed plans does not change the best plan.
TEST(Search, DoesNotDependOnHowManyAreListed) {
  PlanRequest request = wholeSpace(16);
  double five = planned(request).best()->time.step.value;
  for (int top : {1, 2, 20}) {
    request.top = top;
    PlanOutcome outcome = planned(request);
    EXPECT_DOUBLE_EQ(outcome.best()->time.step.value, five);
    for (std::size_t i = 1; i < outcome.result.plans.size(); ++i)
      EXPECT_LE(outcome.result.plans[i - 1].time.step,
                outcome.result.plans[i].time.step);
  }
}

// No plan with pinned choices of three operators of a block is faster than the
// optimum without pins.
TEST(Search, FindsTheBestOfAllPinnedChoices) {
  PlanRequest request = exampleRequest("tiny-gpt2", 4);
  request.layers = 2;
  request.microBatch = 4;
  double free = planned(request).best()->time.step.value;
  double best = std::numeric_limits<double>::infinity();
  int legal = 0;
  for (const char *fc1 : {"column", "row", "batch", "sequence"})
    for (const char *fc2 : {"column", "row", "batch", "sequence"})
      for (const char *norm : {"replicated", "batch", "sequence"}) {
        PlanRequest pinned = request;
        std::vector<std::string> errors;
        pinned.pins = parsePins({std::string("h.*.mlp.fc1=") + fc1,
                                 std::string("h.*.mlp.fc2=") + fc2,
                                 std::string("h.*.ln_2=") + norm},
                                errors);
        PlanOutcome outcome = plan(pinned);
        if (!outcome.best())
          continue;
        ++legal;
        EXPECT_GE(outcome.best()->time.step.value, free * (1 - 1e-9));
        best = std::min(best, outcome.best()->time.step.value);
      }
  EXPECT_EQ(legal, 48);
  // A pin applies to backward and to both layers, so the free optimum may be
  // slightly better than the best pinned plan, but never worse.
  EXPECT_LE(free, best * (1 + 1e-9));
}

} // namespace
} // namespace mtplan::tools
