//===- step_traffic_test.cpp - The cost of communication in a step --------===//
//
// These tests work out small steps by hand: which communication compute hides,
// which tasks communication delays, and which member of StageUse counts the
// delay.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/planner/simulate/step_problem.h"

namespace mtplan::planner {
namespace {

using enum ScheduleKind;

/// Returns a step of one stage with one chunk of `count` segments.
StepProblem segments(int microBatches, int count, double forward,
                     double backward) {
  StepProblem problem = equalStages({oneForwardOneBackward, 1, 1, microBatches},
                                    forward, backward);
  problem.stages[0].chunks[0].slices[0].count = count;
  return problem;
}

SliceTimes &slice(StepProblem &problem, int stage = 0, int chunk = 0) {
  return problem.stages[stage].chunks[chunk].slices[0];
}

std::ptrdiff_t countOf(const StepResult &result, StepRole role) {
  return std::ranges::count(result.tasks, role, &StepTask::role);
}

TEST(StepTraffic, ReduceOverlapsBackwardSegmentBySegment) {
  StepProblem problem = segments(1, 3, 2.0, 4.0);
  problem.stages[0].update = {1.0};
  slice(problem).reduce = {3.0};
  // Backward ends at 10, 14, 18; the last reduce starts at 18.
  StepResult result = simulated(problem);
  EXPECT_EQ(result.step.value, 22.0);
  EXPECT_EQ(result.stages[0].exposedData.value, 3.0);
  EXPECT_EQ(result.stages[0].update.value, 1.0);
  // Reductions are now slower than backward and run without a gap from 10.
  slice(problem).reduce = {6.0};
  EXPECT_EQ(simulated(problem).step.value, 29.0);
  EXPECT_EQ(simulated(problem).stages[0].exposedData.value, 10.0);
  problem.overlap.reduce = false;
  EXPECT_EQ(simulated(problem).step.value, 18.0 + 18.0 + 1.0);
  EXPECT_EQ(simulated(problem).stages[0].exposedData.value, 18.0);
}

TEST(StepTraffic, ReduceOnceOrEachMicroBatch) {
  StepProblem problem = segments(4, 3, 2.0, 4.0);
  slice(problem).reduce = {3.0};
  EXPECT_EQ(simulated(problem).step.value, 4 * 18.0 + 3.0);
  EXPECT_EQ(countOf(simulated(problem), StepRole::reduce), 3);
  problem.reduce = ReduceRule::eachMicroBatch;
  EXPECT_EQ(simulated(problem).step.value, 4 * 18.0 + 3.0);
  EXPECT_EQ(countOf(simulated(problem), StepRole::reduce), 12);
  problem.overlap.reduce = false;
  EXPECT_EQ(simulated(problem).step.value, 4 * 27.0);
}

TEST(StepTraffic, ZeroBubbleReducesAfterGradientsOfWeights) {
  StepProblem problem = equalStages({zeroBubble, 1, 1, 1}, 1.0, 5.0, 2.0);
  slice(problem).count = 2;
  slice(problem).reduce = {10.0};
  // Two forwards end at 2 and input gradients at 8. Weight gradients end at 10
  // and 12, and reductions at 20 and 30.
  EXPECT_EQ(simulated(problem).step.value, 30.0);
}

TEST(StepTraffic, GatherOverlapsTheFirstForward) {
  StepProblem problem = segments(2, 3, 2.0, 4.0);
  slice(problem).gather = {3.0};
  problem.stages[0].update = {1.0};
  // Gathers end at 3, 6, 9, and forwards at 5, 8, 11.
  StepResult result = simulated(problem);
  EXPECT_EQ(result.step.value, 11.0 + 12.0 + 18.0 + 1.0);
  EXPECT_EQ(result.stages[0].exposedData.value, 5.0);
  EXPECT_EQ(countOf(result, StepRole::gather), 3);
  problem.overlap.gather = false;
  EXPECT_EQ(simulated(problem).step.value, 9.0 + 36.0 + 1.0);
  EXPECT_EQ(simulated(problem).stages[0].exposedData.value, 9.0);
}

TEST(StepTraffic, GatherBeforeEachUse) {
  StepProblem problem = segments(1, 2, 2.0, 4.0);
  slice(problem).gather = {3.0};
  problem.gather = GatherRule::eachUse;
  // Gathers end at 3, 6, 9, 12; F runs 3-5 and 6-8, B 9-13 and 13-17. The third
  // gather starts after the first forward, as memory holds two segments.
  StepResult result = simulated(problem);
  EXPECT_EQ(result.step.value, 17.0);
  EXPECT_EQ(result.stages[0].exposedData.value, 5.0);
  problem.prefetch = 0; // four times an exposed gather, then compute
  EXPECT_EQ(simulated(problem).step.value, 24.0);
  problem.overlap.gather = false;
  EXPECT_EQ(simulated(problem).step.value, 24.0);
  EXPECT_EQ(simulated(problem).stages[0].exposedData.value, 12.0);
}

TEST(StepTraffic, PrefetchWaitsForMemory) {
  // Gathers are short; the gather of use n starts when use n - 2 ends.
  StepProblem problem = segments(2, 3, 5.0, 7.0);
  slice(problem).gather = {1.0};
  problem.gather = GatherRule::eachUse;
  StepResult result = simulated(problem);
  EXPECT_EQ(countOf(result, StepRole::gather), 2 * 2 * 3);
  std::vector<Seconds> gathers, uses;
  for (std::size_t i = 0; i < result.tasks.size(); ++i)
    if (result.tasks[i].role == StepRole::gather)
      gathers.push_back(result.timeline.start[i]);
    else if (result.tasks[i].role <= StepRole::backward)
      uses.push_back(result.timeline.finish[i]);
  ASSERT_EQ(gathers.size(), uses.size());
  for (std::size_t n = 2; n < uses.size(); ++n) {
    EXPECT_EQ(gathers[n], uses[n - 2]) << n;
    EXPECT_LT(gathers[n], uses[n - 1]) << n;
  }
  EXPECT_EQ(result.step.value, 1.0 + 2 * 36.0);
}

TEST(StepTraffic, GathersAndReducesQueueTogether) {
  StepProblem problem = segments(1, 2, 1.0, 1.0);
  slice(problem).gather = {2.0};
  slice(problem).reduce = {4.0};
  problem.gather = GatherRule::eachUse;
  problem.reduce = ReduceRule::eachMicroBatch;
  // Gathers end at 2, 4, 6, 8; backwards at 7 and 9; reductions run from 8.
  EXPECT_EQ(simulated(problem).step.value, 16.0);
}

TEST(StepTraffic, SendsDelayTheReceiver) {
  StepProblem problem = equalStages({oneForwardOneBackward, 2, 1, 1}, 1, 2);
  problem.stages[0].chunks[0].sendForward = {3.0};
  problem.stages[1].chunks[0].sendBackward = {4.0};
  StepResult result = simulated(problem);
  EXPECT_EQ(result.step.value, 1.0 + 3.0 + 3.0 + 4.0 + 2.0);
  EXPECT_EQ(result.stages[0].bubble.value, 6.0); // includes its send of 3 s
  EXPECT_EQ(result.stages[0].exposedPointToPoint.value, 4.0);
  EXPECT_EQ(result.stages[1].bubble.value, 1.0 + 6.0);
  EXPECT_EQ(result.stages[1].exposedPointToPoint.value, 3.0);
  problem.overlap.pointToPoint = false;
  result = simulated(problem);
  EXPECT_EQ(result.step.value, 13.0);
  EXPECT_EQ(result.stages[0].exposedPointToPoint.value, 3.0 + 4.0);
  EXPECT_EQ(result.stages[1].exposedPointToPoint.value, 3.0 + 4.0);
  // With more micro-batches, a step with hidden sends is faster than one with
  // exposed sends.
  problem.shape.microBatches = 8;
  double exposed = simulated(problem).step.value;
  problem.overlap.pointToPoint = true;
  EXPECT_LT(simulated(problem).step.value, exposed);
}

TEST(StepTraffic, TiedEmbeddingDelaysBothEnds) {
  StepProblem problem = equalStages({oneForwardOneBackward, 2, 1, 1}, 1, 2);
  problem.tied = {5.0};
  for (StageTimes &stage : problem.stages)
    stage.update = {1.0};
  // Backward ends at 4 on the last stage, at 6 on the first.
  StepResult result = simulated(problem);
  EXPECT_EQ(result.step.value, 12.0);
  for (const StageUse &stage : result.stages) {
    EXPECT_EQ(stage.exposedSync.value, 5.0);
    EXPECT_EQ(stage.bubble.value, 3.0);
  }
  // A single stage needs no reduction.
  problem = equalStages({oneForwardOneBackward, 1, 1, 1}, 1, 2);
  problem.tied = {5.0};
  EXPECT_EQ(simulated(problem).step.value, 3.0);
}

TEST(StepTraffic, TiedEmbeddingWaitsForItsTwoSegments) {
  StepProblem problem = equalStages({oneForwardOneBackward, 2, 1, 1}, 1, 2);
  problem.tied = {5.0};
  auto tiedAt = [&] {
    StepResult result = simulated(problem);
    auto at = std::ranges::find(result.tasks, StepRole::tied, &StepTask::role);
    return result.timeline.start[at - result.tasks.begin()].value;
  };
  // The last stage's second segment, its head, ends backward at 5 and its
  // reduction at 15; the first segment's reduction ends at 25.
  slice(problem, 1).count = 2;
  slice(problem, 1).reduce = {10.0};
  EXPECT_EQ(tiedAt(), 15.0);
  EXPECT_EQ(simulated(problem).step.value, 25.0);
  // Exposed reductions of both segments run from 7 to 27, with and without
  // gathers.
  problem.overlap.reduce = false;
  EXPECT_EQ(tiedAt(), 27.0);
  problem.reduce = ReduceRule::eachMicroBatch;
  EXPECT_EQ(tiedAt(), 27.0);
  slice(problem, 1).gather = {1.0};
  problem.gather = GatherRule::eachUse;
  EXPECT_EQ(tiedAt(), 27.0);
  // If the last stage reduces nothing, the tied reduction starts when the first
  // stage's backward ends, at 9.
  slice(problem, 1).reduce = {};
  EXPECT_EQ(tiedAt(), 9.0);
}

TEST(StepTraffic, ClippingMakesEveryStageWait) {
  StepProblem problem = equalStages({oneForwardOneBackward, 2, 1, 1}, 1, 2);
  problem.stages[0].update = {1.0};
  problem.stages[1].update = {10.0};
  EXPECT_EQ(simulated(problem).step.value, 4.0 + 10.0);
  problem.clipsGradients = true;
  problem.gradientNorm = {0.5};
  EXPECT_EQ(simulated(problem).step.value, 6.5 + 10.0);
}

TEST(StepTraffic, OffloadIsAPipelineOfItsOwn) {
  StepProblem problem = equalStages({interleaved, 1, 2, 1}, 1.0, 2.0);
  for (ChunkTimes &chunk : problem.stages[0].chunks) {
    chunk.down = {2.0};
    chunk.hostUpdate = {3.0};
    chunk.up = {1.0};
  }
  // Backward of chunk 1 ends at 4, of chunk 0 at 6. Transfers down end at 6 and
  // 8, host updates at 9 and 12, the last transfer up at 13.
  StepResult result = simulated(problem);
  EXPECT_EQ(result.step.value, 13.0);
  EXPECT_EQ(result.stages[0].exposedHost.value, 7.0);
  problem.overlap.down = problem.overlap.hostUpdate = problem.overlap.up =
      false;
  EXPECT_EQ(simulated(problem).step.value, 18.0);
  EXPECT_EQ(simulated(problem).stages[0].exposedHost.value, 12.0);
}

} // namespace
} // namespace mtplan::planner
