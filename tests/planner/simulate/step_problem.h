//===- step_problem.h - Steps to simulate --------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_PLANNER_SIMULATE_STEP_PROBLEM_H
#define MTPLAN_TESTS_PLANNER_SIMULATE_STEP_PROBLEM_H

#include <random>
#include <vector>

#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Returns a step whose chunks have one segment each, with these times and no
/// others.
inline StepProblem equalStages(ScheduleShape shape, double forward,
                               double backward, double weightGradient = 0.0) {
  SliceTimes slice;
  slice.forward = {forward};
  slice.backward = {backward};
  slice.weightGradient = {weightGradient};
  ChunkTimes chunk;
  chunk.slices = {slice};
  StageTimes stage;
  stage.chunks.assign(shape.chunks, chunk);
  StepProblem problem;
  problem.shape = shape;
  problem.stages.assign(shape.stages, stage);
  return problem;
}

inline StepResult simulated(const StepProblem &problem) {
  return simulateStep(problem, scheduleOf(problem.shape));
}

inline ScheduleShape randomShape(std::mt19937_64 &random) {
  ScheduleShape shape;
  shape.kind = ScheduleKind(random() % 4);
  shape.stages = 1 + int(random() % 5);
  shape.microBatches = 1 + int(random() % 10);
  if (shape.kind == ScheduleKind::interleaved) {
    shape.chunks = 1 + int(random() % 3);
    shape.microBatches = shape.stages * (1 + int(random() % 3));
  }
  return shape;
}

/// Returns a whole number, so that sums are exact in any order. Zeros are
/// common.
inline Seconds randomSeconds(std::mt19937_64 &random, int most) {
  if (random() % 4 == 0)
    return {};
  return {double(random() % (most + 1))};
}

/// Returns uneven stages that compute and send.
inline StepProblem randomPipeline(std::mt19937_64 &random) {
  StepProblem problem = equalStages(randomShape(random), 0.0, 0.0);
  for (StageTimes &stage : problem.stages)
    for (ChunkTimes &chunk : stage.chunks) {
      chunk.slices.resize(1 + random() % 3);
      for (SliceTimes &slice : chunk.slices) {
        slice.count = int(random() % 4);
        slice.forward = {double(1 + random() % 20)};
        slice.weightGradient = {double(random() % 20)};
        slice.backward = slice.weightGradient + Seconds{double(random() % 20)};
      }
      chunk.sendForward = randomSeconds(random, 10);
      chunk.sendBackward = randomSeconds(random, 10);
    }
  problem.overlap.pointToPoint = random() % 2 == 0;
  return problem;
}

/// Returns randomPipeline() with random collectives, updates, offload and
/// overlap.
inline StepProblem randomStep(std::mt19937_64 &random) {
  StepProblem problem = randomPipeline(random);
  auto flag = [&] { return random() % 2 == 0; };
  bool offload = flag();
  for (StageTimes &stage : problem.stages) {
    stage.update = randomSeconds(random, 30);
    for (ChunkTimes &chunk : stage.chunks) {
      for (SliceTimes &slice : chunk.slices) {
        slice.gather = randomSeconds(random, 15);
        slice.reduce = randomSeconds(random, 15);
      }
      if (offload) {
        chunk.down = randomSeconds(random, 30);
        chunk.hostUpdate = randomSeconds(random, 30);
        chunk.up = randomSeconds(random, 30);
      }
    }
  }
  problem.gather = GatherRule(random() % 2);
  problem.reduce = ReduceRule(random() % 2);
  problem.prefetch = int(random() % 3);
  problem.overlap = {flag(), flag(), flag(), flag(), flag(), flag()};
  problem.tied = randomSeconds(random, 20);
  problem.clipsGradients = flag();
  problem.gradientNorm = randomSeconds(random, 5);
  return problem;
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SIMULATE_STEP_PROBLEM_H
