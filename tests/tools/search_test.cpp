//===- search_test.cpp - The optimum of the whole is the best of the parts ===//
//
// A plan over everything, held against plans over one part of the space each:
// one mesh and micro-batch, or one choice for some operators. The best of the
// parts must be the whole's, whatever order bounds excluded them in.
//
//===----------------------------------------------------------------------===//

#include <limits>

#include "tests/tools/planning.h"

namespace mtplan::tools {
namespace {

PlanRequest wholeSpace(std::int64_t globalBatch) {
  PlanRequest request;
  request.model = MTPLAN_SOURCE_DIR "/examples/tiny-gpt2.json";
  request.hardware = "dgx-a100-80g";
  request.gpus = 8;
  request.globalBatch = globalBatch;
  request.splits = defaultSplits();
  return request;
}

// Fastest step over all meshes and micro-batches, each planned on its own.
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

TEST(Search, IsTheBestOfAllMeshesAndMicroBatches) {
  PlanRequest request = wholeSpace(16);
  PlanOutcome outcome = planned(request);
  EXPECT_TRUE(outcome.result.optimal);
  EXPECT_DOUBLE_EQ(outcome.best()->time.step.value, bestOfEach(request));
}

// Less memory than the fastest plan needs: another plan, still the best of all
// that fit.
TEST(Search, IsTheBestThatFits) {
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

// The list's length changes what is shown, not what is best.
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

// Every choice for three operators of a block, the rest solved around it: the
// best of all choices is the free optimum, and none is better.
TEST(Search, IsTheBestOfAllPinnedChoices) {
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
        pinned.pins = planner::parsePins({std::string("h.*.mlp.fc1=") + fc1,
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
  // A pin holds backward too and for both layers alike, so the free optimum
  // may be a little below the best of the pinned ones, never above.
  EXPECT_LE(free, best * (1 + 1e-9));
}

} // namespace
} // namespace mtplan::tools
