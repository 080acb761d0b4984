//===- bounds.h - What no plan of a kind can do better than -----*- C++ -*-===//
//
// Admissible bounds of time and memory, from the cheapest to the tightest. What
// many candidates share is computed once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUNDS_H

#include <array>
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
  /// The same however the stages, of one part each, are cut.
  Bytes memoryOfAnyCut(const Parallelism &how) const;

  /// Forward and backward of one micro-batch through the whole model, its work
  /// spread evenly over all ranks of a stage, at the best rate.
  Seconds compute(const Parallelism &how);

private:
  /// Of all ranks together; of experts, and other.
  struct ParameterSize {
    double elements = 0.0, bytes = 0.0;
    double expertElements = 0.0, expertBytes = 0.0;
  };
  static void add(const Parameter &parameter, ParameterSize &size);
  double heldBytes(const ParameterSize &size, const Parallelism &how) const;
  /// Of one copy of a segment, all ranks together.
  struct SegmentSize {
    double perSample = 0.0, fixed = 0.0; ///< bytes saved for backward
    double handedPerSample = 0.0, handedFixed = 0.0; ///< of them, carried in
    double inputsPerSample = 0.0, inputsFixed = 0.0;
    ParameterSize parameters; ///< of one copy
    std::vector<int> shared;  ///< parameters, with other copies or segments
  };
  /// Bytes of one copy of a segment on a rank of one stage.
  struct CopyBytes {
    double held = 0.0;     ///< parameters, their state
    double kept = 0.0;     ///< for backward, of all micro-batches in flight
    double keptLess = 0.0; ///< of that, what a copy that recomputes does not
    double inputs = 0.0;
  };
  CopyBytes bytesOfCopy(const Parallelism &how, double inFlight,
                        int segment) const;
  void measure(const SegmentGraph &segment);
  /// What copies or segments share, of one stage, each once.
  ParameterSize sharedBy(const Parallelism &how, int stage,
                         const std::vector<PipelinePart> &parts) const;
  double stageBytes(const Parallelism &how, int stage,
                    const std::vector<PipelinePart> &parts) const;

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::vector<SegmentSize> sizes;
  /// Once, and again where all of it recomputes.
  std::map<std::tuple<int, std::int64_t, Recompute>, std::array<Seconds, 2>>
      computed;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUNDS_H
