//===- step_bound_test.cpp - Lower bounds of a step -----------------------===//

#include <random>

#include <gtest/gtest.h>

#include "planner/simulate/step.h"
#include "tests/planner/simulate/step_problem.h"

namespace mtplan::planner {
namespace {

using enum ScheduleKind;

// Times are whole numbers, so the comparison needs no tolerance.
TEST(StepBound, NeverExceedsTheStep) {
  std::mt19937_64 random(1);
  double sum = 0.0, bounds = 0.0;
  for (int round = 0; round < 5000; ++round) {
    bool plain = round % 2 == 0;
    StepProblem problem = plain ? randomPipeline(random) : randomStep(random);
    double step = stepSeconds(problem, scheduleOf(problem.shape)).value;
    double bound = stepLowerBound(problem).value;
    EXPECT_LE(bound, step) << "round " << round;
    if (plain) {
      sum += step;
      bounds += bound;
    }
  }
  // Bounds are tight for pipelines of compute and sends alone.
  EXPECT_GT(bounds, 0.9 * sum);
}

TEST(StepBound, IsExactForEqualStages) {
  for (ScheduleKind kind : {gpipe, oneForwardOneBackward})
    for (int p = 1; p <= 8; ++p)
      for (int m = 1; m <= 20; ++m) {
        StepProblem problem = equalStages({kind, p, 1, m}, 3.0, 5.0);
        EXPECT_EQ(stepLowerBound(problem), simulated(problem).step);
        EXPECT_EQ(stepLowerBound(problem).value, (m + p - 1) * 8.0);
      }
}

TEST(StepBound, IsExactForOneMicroBatch) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    StepProblem problem = randomPipeline(random);
    problem.shape.kind = oneForwardOneBackward;
    problem.shape.chunks = problem.shape.microBatches = 1;
    for (StageTimes &stage : problem.stages)
      stage.chunks.resize(1);
    EXPECT_EQ(stepLowerBound(problem), simulated(problem).step) << round;
  }
}

TEST(StepBound, DependsOnTheSlowestStage) {
  // Stage 1 takes 10 s forward and 20 s backward, the others 1 s and 2 s. Stage
  // 1 starts after 1 s, computes 8 micro-batches of 30 s, and updates in 7 s.
  StepProblem problem = equalStages({oneForwardOneBackward, 3, 1, 8}, 1.0, 2.0);
  problem.stages[1].chunks[0].slices[0].forward = {10.0};
  problem.stages[1].chunks[0].slices[0].backward = {20.0};
  problem.stages[1].update = {7.0};
  problem.stages[0].update = {1.0};
  EXPECT_EQ(stepLowerBound(problem).value, 1.0 + 240.0 + 7.0);
}

} // namespace
} // namespace mtplan::planner
