//===- bounds.h - Lower bounds from work and sizes alone --------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_BOUNDS_H

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/bound/stage_bounds.h"
#include "planner/search/space/pipeline_parts.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns a lower bound of the step if a micro-batch takes the time `through`
/// in all stages together, for any division among stages. With one chunk per
/// stage, a stage starts after the previous stages start and ends before they
/// end. If each of m micro-batches takes T_i in stage i, the step takes at
/// least m T_i + T_0 + ... + T_(i-1) for each i. The maximum over the p stages
/// is least if all p values are equal to through / (1 - (1 - 1/m)^p). For
/// several chunks and zero-bubble schedules, the bound is through * m / p.
Seconds pipelineBound(Seconds through, const Parallelism &config);

/// Holds lower bounds of one micro-batch, by layer: of forward, and of forward
/// plus backward. A layer includes the segments that are always in its stage.
struct LayerTimes {
  std::vector<Seconds> forward, both;
};

/// Lists all uneven cuts of a pipeline, by ascending lower bound.
struct OrderedCuts {
  std::vector<std::vector<int>> layers;
  std::vector<Seconds> bounds; ///< no plan with the cut is faster
  std::size_t next = 0; ///< index of the next cut that becomes a candidate
};

/// Returns a lower bound of the step for the cut in config.layers.
Seconds cutBound(const Parallelism &config, const LayerTimes &times);

OrderedCuts orderedCuts(const Parallelism &config, const LayerTimes &times);

/// Describes a configuration that branch and bound has not solved yet.
struct Candidate {
  Parallelism config;
  Seconds bound; ///< a lower bound of every plan's step
  /// Names the source of `bound`. Each level is tighter, and takes longer to
  /// compute, than the previous level: the operators' work; the best plan of
  /// one micro-batch, first with recomputation's compute alone; the least times
  /// of every segment; the simulated step of those times.
  enum class BoundLevel : std::uint8_t {
    work,
    computedOnce,
    microBatch,
    relaxed,
    step
  } level{};
  std::optional<StepProblem> relaxed; ///< the step until it is simulated
  /// Holds the uneven cuts that this candidate represents. They become separate
  /// candidates, a few at a time.
  std::optional<OrderedCuts> cuts;
  bool isCut() const { return cuts && level == BoundLevel::microBatch; }
};

/// Computes lower bounds of time and memory without a solver. Values that many
/// configurations share are computed once.
class Bounds {
public:
  /// All arguments must outlive the object.
  Bounds(const ModelGraph &theModel, const Machine &theMachine,
         const SearchOptions &theOptions);

  /// Returns a lower bound of the memory of the fullest rank: the larger of the
  /// bounds of the first and the last stage. A stage's bound counts reserved
  /// memory, parameters and their state, sharded as far as the configuration
  /// allows, saved activations in flight, and inputs.
  Bytes memory(const Parallelism &config);

  /// Returns a lower bound of one rank's offloaded bytes in the host's memory.
  Bytes hostMemory(const Parallelism &config);
  /// Returns a lower bound of memory() over all cuts into stages of one chunk.
  Bytes memoryOfAnyCut(const Parallelism &config) const;

  /// Returns a lower bound of one micro-batch through all stages: the model's
  /// work, divided evenly among all ranks of a stage, at the best rate.
  Seconds compute(const Parallelism &config);

private:
  /// Holds sizes over all ranks, of expert parameters and of the others.
  struct ParameterSize {
    double elements = 0.0, bytes = 0.0;
    double expertElements = 0.0, expertBytes = 0.0;
  };
  static void add(const Parameter &parameter, ParameterSize &size);
  double heldBytes(const ParameterSize &size, const Parallelism &config) const;
  /// Holds sizes of one repeat of a segment, over all ranks together. Bytes are
  /// per sample or, in members named `fixed`, of tensors without a batch
  /// dimension.
  struct SegmentSize {
    double perSample = 0.0, fixed = 0.0; ///< bytes saved for backward
    /// Hold the bytes of carriedIn that `perSample` and `fixed` include.
    double carriedPerSample = 0.0, carriedFixed = 0.0;
    double inputsPerSample = 0.0, inputsFixed = 0.0;
    ParameterSize parameters; ///< unshared parameters
    std::vector<int> shared;  ///< indices of shared parameters
  };
  /// Holds the bytes of one repeat on one rank.
  struct RepeatBytes {
    double held = 0.0;      ///< parameters and their state
    double saved = 0.0;     ///< activations of all micro-batches in flight
    double discarded = 0.0; ///< the part of `saved` that recomputation drops
    double inputs = 0.0;
  };
  RepeatBytes bytesOfRepeat(const Parallelism &config, double inFlight,
                            int segment) const;
  void measure(const SegmentGraph &segment);
  /// Returns the size of a stage's shared parameters, each counted once.
  ParameterSize sharedBy(const Parallelism &config, int stage,
                         const std::vector<PipelinePart> &parts) const;
  double stageBytes(const Parallelism &config, int stage,
                    const std::vector<PipelinePart> &parts) const;
  /// Returns pipelineParts() of `layers`, valid until the next call.
  const std::vector<PipelinePart> &partsOf(const std::vector<int> &layers);

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::vector<SegmentSize> sizes;
  /// Caches partsOf(): consecutive configurations often have equal layers.
  std::pair<std::vector<int>, std::vector<PipelinePart>> lastParts;
  /// Caches the time without recomputation, and the extra time if all layers
  /// recompute, by ranks of a stage, samples and kind of recomputation.
  std::map<std::tuple<int, std::int64_t, Recompute>, std::array<Seconds, 2>>
      computed;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_BOUNDS_H
