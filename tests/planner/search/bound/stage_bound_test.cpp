//===- stage_bound_test.cpp - Bounds of a step by one stage's work --------===//

#include <random>

#include <gtest/gtest.h>

#include "planner/search/bound/bounds.h"
#include "tests/planner/simulate/step_problem.h"

namespace mtplan::planner {
namespace {

/// The work of one stage in a step.
struct StageWork {
  Seconds compute;
  Seconds traffic; ///< all-gathers, reductions and the update
};

StageWork workOf(const StepProblem &problem, const StageTimes &stage) {
  const double microBatches = problem.shape.microBatches;
  const double gathers =
      problem.gather == GatherRule::eachUse ? 2.0 * microBatches : 1.0;
  const double reductions =
      problem.reduce == ReduceRule::eachMicroBatch ? microBatches : 1.0;
  StageWork work{{}, stage.update};
  for (const ChunkTimes &chunk : stage.chunks)
    for (const SliceTimes &slice : chunk.slices) {
      work.compute +=
          microBatches * slice.count * (slice.forward + slice.backward);
      work.traffic +=
          slice.count * (gathers * slice.gather + reductions * slice.reduce);
    }
  return work;
}

// Returns the share of StageBound::ofSum() that holds for the problem.
double sequentialShare(const StepProblem &problem) {
  if (!problem.overlap.gather && !problem.overlap.reduce)
    return 1.0;
  const bool onceAStep = problem.gather == GatherRule::beforeStep &&
                         problem.reduce == ReduceRule::onceAStep;
  const double overlapped = problem.shape.chunks > 1 ? problem.shape.stages : 1;
  return onceAStep ? 1.0 - overlapped / problem.shape.microBatches : 0.0;
}

TEST(StageBound, NeverExceedsTheStep) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100'000; ++round) {
    const StepProblem problem = randomStep(random);
    const double step =
        stepSeconds(problem, scheduleOf(problem.shape)).value * (1 + 1e-12);
    std::vector<StageBound> bounds = stageBounds(problem);
    if (problem.shape.kind == ScheduleKind::zeroBubble)
      addZeroBubbleBounds(problem, bounds);
    for (std::size_t s = 0; s < bounds.size(); ++s) {
      const StageWork work = workOf(problem, problem.stages[s]);
      EXPECT_LE(bounds[s].ofWork(work.compute).value, step)
          << "round " << round << ", stage " << s << " of "
          << problem.stages.size() << ", " << nameOf(problem.shape.kind)
          << ", chunks " << problem.shape.chunks << ", micro-batches "
          << problem.shape.microBatches;
      for (double weight : {0.0, 0.125, 0.5, 1.0})
        EXPECT_LE(bounds[s]
                      .ofSum(work.compute + weight * work.traffic, weight,
                             sequentialShare(problem))
                      .value,
                  step)
            << "round " << round << ", stage " << s << ", weight " << weight;
    }
  }
}

// Equal stages under 1f1b: the last stage waits for the first forward, the last
// backward returns through all stages, and the first stage then reduces its
// gradients and updates.
TEST(StageBound, IsExactForEqualStages) {
  for (bool overlaps : {false, true}) {
    StepProblem problem =
        equalStages({ScheduleKind::oneForwardOneBackward, 4, 1, 8}, 1.0, 2.0);
    problem.overlap.reduce = overlaps;
    for (StageTimes &stage : problem.stages) {
      stage.update = {0.25};
      stage.chunks.front().slices.front().reduce = {0.5};
    }
    const Seconds compute{8 * 3.0};
    EXPECT_EQ(stageBounds(problem).back().ofWork(compute),
              simulated(problem).step)
        << "overlaps " << overlaps;
  }
}

} // namespace
} // namespace mtplan::planner
