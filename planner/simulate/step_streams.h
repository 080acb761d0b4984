//===- step_streams.h - A step's tasks on their streams ---------*- C++ -*-===//
//
// Maps roles to streams and links, and segments to times. The order of tasks is
// decided in step_graph.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_STREAMS_H
#define MTPLAN_PLANNER_SIMULATE_STEP_STREAMS_H

#include "planner/simulate/step_graph.h"

namespace mtplan::planner {

/// One segment's times, or one chunk's sum of them.
struct SegmentTimes {
  Seconds forward, backward, weightGradient, gather, reduce;
};

class StepStreams {
public:
  StepStreams(const StepProblem &theProblem, StepGraph &theResult,
              bool theDescribe);

  /// Adds a task and returns its number.
  int add(StepRole role, int stage, Seconds duration,
          std::span<const int> dependencies, int chunk = -1,
          int microBatch = -1, int segment = -1);
  int add(StepRole role, int stage, Seconds duration,
          std::initializer_list<int> dependencies, int chunk = -1,
          int microBatch = -1, int segment = -1) {
    return add(role, stage, duration,
               std::span<const int>(dependencies.begin(), dependencies.size()),
               chunk, microBatch, segment);
  }

  int segmentCount(int stage, int chunk) const {
    std::size_t at = index(stage, chunk);
    return begin[at + 1] - begin[at];
  }
  const SegmentTimes &segment(int stage, int chunk, int number) const {
    return segments[begin[index(stage, chunk)] + number];
  }
  const SegmentTimes &chunk(int stage, int number) const {
    return chunks[index(stage, number)];
  }

private:
  /// Each role has a stream; the roles on compute share the first.
  static constexpr int kStreams = int(StepRole::up) + 1;

  std::size_t index(int stage, int chunk) const {
    return std::size_t(stage) * problem.shape.chunks + chunk;
  }
  bool isOnCompute(StepRole role) const;
  int linkOf(StepRole role, int stage) const;

  const StepProblem &problem;
  StepGraph &result;
  bool describe;
  bool onCompute[kStreams];
  std::vector<SegmentTimes> segments, chunks; ///< ordered by stage and chunk
  std::vector<int> begin; ///< per chunk: index of its first segment
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_STREAMS_H
