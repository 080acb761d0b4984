//===- step_end.cpp - What follows the last backward of a step ------------===//

#include "planner/simulate/step_builder.h"

namespace mtplan::planner {

void StepBuilder::finishStep() {
  int last = problem.shape.stages - 1;
  int lastChunk = problem.shape.chunks - 1;
  if (!problem.overlap.reduce && problem.reduce == ReduceRule::onceAStep)
    for (int stage = 0; stage <= last; ++stage)
      for (int chunk = lastChunk; chunk >= 0; --chunk)
        reduceAfterAll(stage, chunk);

  if (last > 0 && problem.tied > Seconds{})
    tied = streams.add(
        StepRole::tied, 0, problem.tied,
        {partOf(0, 0).reduced, partOf(last, lastChunk).lastSegment});
  if (problem.clipsGradients) {
    std::vector<int> gradients = {tied};
    for (const Part &part : parts)
      gradients.push_back(part.reduced);
    norm = streams.add(StepRole::norm, 0, problem.gradientNorm, gradients);
  }
  for (int stage = 0; stage <= last; ++stage)
    updateStage(stage);
}

void StepBuilder::reduceAfterAll(int stage, int chunk) {
  Seconds seconds = streams.chunk(stage, chunk).reduce;
  if (seconds == Seconds{})
    return;
  Part &part = partOf(stage, chunk);
  part.reduced = streams.add(StepRole::reduce, stage, seconds, {}, chunk);
  part.lastSegment = part.reduced;
}

void StepBuilder::updateStage(int stage) {
  int chunks = problem.shape.chunks;
  bool holdsTied = stage == 0 || stage + 1 == problem.shape.stages;
  std::vector<int> before = {holdsTied ? tied : kNoTask, norm};
  // Gradients are there in the order of backward: last chunk first.
  std::vector<int> ready(chunks);
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    ready[chunk] = partOf(stage, chunk).reduced;
    before.push_back(ready[chunk]);
    Seconds seconds = problem.stages[stage].chunks[chunk].down;
    bool isTied = stage == 0 ? chunk == 0 : chunk + 1 == chunks;
    if (seconds > Seconds{})
      ready[chunk] = streams.add(
          StepRole::down, stage, seconds,
          {ready[chunk], holdsTied && isTied ? tied : kNoTask}, chunk);
  }
  int update = streams.add(StepRole::update, stage,
                           problem.stages[stage].update, before);
  auto onHost = [&](StepRole role, Seconds ChunkTimes::*times) {
    for (int chunk = chunks - 1; chunk >= 0; --chunk) {
      Seconds seconds = problem.stages[stage].chunks[chunk].*times;
      if (seconds > Seconds{})
        ready[chunk] = streams.add(role, stage, seconds,
                                   {ready[chunk], before[0], norm}, chunk);
    }
  };
  onHost(StepRole::hostUpdate, &ChunkTimes::hostUpdate);
  onHost(StepRole::up, &ChunkTimes::up);
  if (problem.gather != GatherRule::afterUpdate)
    return;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    Seconds seconds = streams.chunk(stage, chunk).gather;
    if (seconds > Seconds{})
      streams.add(StepRole::gather, stage, seconds, {update, ready[chunk]},
                  chunk);
  }
}

} // namespace mtplan::planner
