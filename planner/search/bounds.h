//===- bounds.h - What no plan of a kind can do better than -----*- C++ -*-===//
//
// Admissible bounds of time and memory, from the cheapest to the tightest. What
// many candidates share is computed once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUNDS_H

#include <map>
#include <tuple>

#include "planner/search/pipeline_parts.h"
#include "planner/search/search.h"

namespace mtplan::planner {

/// The step takes at least this if a micro-batch takes `through` in all stages
/// together, however it is divided among them. With one chunk a stage starts
/// after those before it and they finish after it: stage i needs
/// m T_i + T_0 + ... + T_(i-1), whose maximum is least where all are equal,
/// at T / (1 - (1 - 1/m)^p).
Seconds pipelineFloor(Seconds through, const Parallelism &how);

class Bounds {
public:
  /// All must outlive this.
  Bounds(const ModelGraph &theModel, const Machine &theMachine,
         const SearchOptions &theOptions);

  /// The least memory of the first or the last stage, whichever is more:
  /// parameters and their state split as far as the candidate allows, what must
  /// be kept for backward of the micro-batches in flight, inputs.
  Bytes memory(const Parallelism &how) const;

  /// The same of the host's memory.
  Bytes hostMemory(const Parallelism &how) const;

  /// Forward and backward of one micro-batch through the whole model, its work
  /// spread evenly over all ranks of a stage, at the best rate.
  Seconds compute(const Parallelism &how);

private:
  /// Of one copy of a segment, all ranks together.
  struct SegmentSize {
    double perSample = 0.0, fixed = 0.0; ///< bytes saved for backward
    double handedPerSample = 0.0, handedFixed = 0.0; ///< of them, carried in
    double inputsPerSample = 0.0, inputsFixed = 0.0;
    double elements = 0.0, parameterBytes = 0.0; ///< of parameters
  };
  void measure(const SegmentGraph &segment);
  std::vector<const Parameter *> measuredAgain() const;
  double stageBytes(const Parallelism &how, int stage,
                    const std::vector<PipelinePart> &parts) const;

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::vector<SegmentSize> sizes;
  std::map<std::tuple<int, std::int64_t, Recompute, double>, Seconds> computed;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUNDS_H
