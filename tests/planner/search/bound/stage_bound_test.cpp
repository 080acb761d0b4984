//===- stage_bound_test.cpp - Bounds of a step by one stage's work --------===//

#include <random>

#include <gtest/gtest.h>

#include "planner/search/bound/path_bound.h"
#include "planner/search/bound/stage_bounds.h"
#include "tests/planner/simulate/step_problem.h"

namespace mtplan::planner {
namespace {

/// Holds the work of one stage in a step.
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

// Returns the `sequential` of StageBound::ofSum() that holds for the problem.
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

// Returns the problem with phases that are shorter by random shares.
StepProblem shorter(StepProblem problem, std::mt19937_64 &random) {
  const auto share = [&] { return static_cast<double>(random() % 5) / 4; };
  for (StageTimes &stage : problem.stages)
    for (ChunkTimes &chunk : stage.chunks)
      for (SliceTimes &slice : chunk.slices) {
        slice.forward = slice.forward * share();
        const Seconds input = slice.backward - slice.weightGradient;
        slice.weightGradient = slice.weightGradient * share();
        slice.backward = input * share() + slice.weightGradient;
      }
  return problem;
}

// The forward of stage 0 does not delay stage 2 while stage 1 gathers weights.
TEST(StageBound, OfTheLastBackwardIgnoresGathersOfOtherStages) {
  StepProblem least =
      equalStages({ScheduleKind::zeroBubble, 3, 1, 8}, 1.0, 2.0, 1.0);
  least.overlap.gather = false;
  least.stages[1].chunks[0].slices[0].gather = {10.0};
  StepProblem problem = least;
  problem.stages[0].chunks[0].slices[0].forward = {2.0};
  problem.stages[2].chunks[0].slices[0].forward = {30.0};
  std::vector<StageBound> bounds = stageBounds(least);
  addZeroBubbleBounds(least, bounds);
  const auto [share, fixed] = bounds[2].lastBackward;
  const Seconds longer =
      workOf(problem, problem.stages[0]).compute / 8.0 - bounds[0].microBatch;
  const Seconds counted =
      workOf(problem, problem.stages[2]).compute - Seconds{(1.0 - share) * 8.0};
  EXPECT_LE(fixed + counted + longer, simulated(problem).step);
}

// The bound uses the compute of every stage, but only lower bounds of phases.
TEST(StageBound, OfAllStagesNeverExceedsTheStep) {
  std::mt19937_64 random(4);
  int larger = 0;
  for (int round = 0; round < 100'000; ++round) {
    const StepProblem problem = randomStep(random);
    const double step =
        stepSeconds(problem, scheduleOf(problem.shape)).value * (1 + 1e-12);
    const std::vector<StageBound> bounds =
        stageBounds(shorter(problem, random));
    std::vector<Seconds> compute;
    double most = 0.0; // the bound that ignores the other stages' compute
    for (std::size_t s = 0; s < bounds.size(); ++s) {
      compute.push_back(workOf(problem, problem.stages[s]).compute);
      most = std::max(most, bounds[s].ofWork(compute.back()).value);
    }
    const double bound =
        ofAllStages(bounds, compute, problem.shape.microBatches).value;
    EXPECT_LE(bound, step) << "round " << round;
    larger += static_cast<int>(bound > most * 1.01);
  }
  EXPECT_GT(larger, 1'000);
}

// The bound uses the compute of all stages and one stage's weight gradients.
TEST(StageBound, OfTheLastBackwardNeverExceedsTheStep) {
  std::mt19937_64 random(6);
  int compared = 0;
  for (int round = 0; compared < 20'000; ++round) {
    const StepProblem problem = randomStep(random);
    if (problem.shape.kind != ScheduleKind::zeroBubble)
      continue;
    const double step =
        stepSeconds(problem, scheduleOf(problem.shape)).value * (1 + 1e-12);
    const StepProblem least = shorter(problem, random);
    std::vector<StageBound> bounds = stageBounds(least);
    addZeroBubbleBounds(least, bounds);
    const double microBatches = problem.shape.microBatches;
    const Seconds longer =
        workOf(problem, problem.stages.front()).compute / microBatches -
        bounds.front().microBatch;
    for (std::size_t s = 1; s < bounds.size(); ++s) {
      const auto [share, fixed] = bounds[s].lastBackward;
      if (share == 0.0)
        continue;
      Seconds counted = workOf(problem, problem.stages[s]).compute;
      for (const SliceTimes &slice : problem.stages[s].chunks.front().slices)
        counted = counted - (1.0 - share) * microBatches * slice.count *
                                slice.weightGradient;
      EXPECT_LE((fixed + counted + std::max(longer, Seconds{})).value, step)
          << "round " << round << ", stage " << s;
      ++compared;
    }
  }
}

// Returns lower bounds of the sums of the problem's times, and shorter times of
// its phases.
LeastStep leastOf(const StepProblem &problem, std::mt19937_64 &random) {
  LeastStep least{shorter(problem, random), {}, {}};
  for (int c = 0; c < problem.shape.chunks; ++c)
    for (const StageTimes &stage : problem.stages) {
      Seconds all, weights;
      for (const SliceTimes &slice : stage.chunks[std::size_t(c)].slices) {
        all += slice.count * (slice.forward + slice.backward);
        weights += slice.count * slice.weightGradient;
      }
      // Some sums are known only by lower bounds.
      const double share = random() % 2 == 0 ? 1.0 : 0.75;
      least.compute.push_back(all * share);
      if (problem.shape.kind == ScheduleKind::zeroBubble)
        least.withoutWeights.push_back((all - weights) * share);
    }
  return least;
}

// With the step's own times, the longest path takes as long as the step.
TEST(PathBound, NeverExceedsTheStep) {
  std::mt19937_64 random(5);
  int close = 0, rounds = 0;
  for (; rounds < 20'000; ++rounds) {
    const StepProblem problem = randomStep(random);
    const Seconds step = stepSeconds(problem, scheduleOf(problem.shape));
    std::vector<Seconds> compute;
    for (const StageTimes &stage : problem.stages)
      compute.push_back(workOf(problem, stage).compute);
    LeastStep least = leastOf(problem, random);
    const Seconds bound = pathBound(least, compute, step, 8);
    EXPECT_LE(bound.value, step.value * (1 + 1e-12)) << "round " << rounds;
    close += static_cast<int>(bound >= step * 0.9);
    least.problem = problem;
    EXPECT_NEAR(pathBound(least, compute, step, 1).value, step.value,
                step.value * 1e-12);
  }
  EXPECT_GT(close, rounds / 2);
}

// With equal stages under 1F1B, the last stage waits for the first forward, the
// last backward returns through all stages, and the first stage then reduces
// its gradients and updates.
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
