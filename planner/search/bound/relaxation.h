//===- relaxation.h - Lower bounds from each segment on its own -*- C++ -*-===//
//
// The relaxation of a step lets every segment, phase and parameter take its
// least time over all plans, each on its own. A step never gets longer when its
// tasks get shorter (simulate/timeline.h), so the simulated step of these times
// bounds every plan's step: schedule, overlap and uneven ends included. Terms
// that many configurations share are computed once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_RELAXATION_H
#define MTPLAN_PLANNER_SEARCH_BOUND_RELAXATION_H

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/bound/bounds.h"
#include "planner/search/price/price.h"
#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Lower bounds of one micro-batch on the ranks of a stage.
struct MicroBatchBound {
  bool isLegal = true; ///< whether some plan exists
  /// By segment, of one repeat. No plan has less of either.
  std::vector<Seconds> forward, backward;
  Seconds all; ///< both phases of all repeats, in one plan
};

/// Relaxes the steps of one model.
class Relaxation {
public:
  /// All arguments must outlive the object.
  Relaxation(const ModelGraph &theModel, const Machine &theMachine,
             const SearchOptions &theOptions);

  /// Solves the micro-batches of these configurations on two threads.
  void prepare(const std::vector<Parallelism> &candidates);

  /// Returns a lower bound of a micro-batch through all stages, forward and
  /// backward; +infinity if no plan is legal. The configuration must be
  /// prepared.
  Seconds microBatchOf(const Parallelism &config) const;

  /// The relaxed step of a configuration.
  struct StepBound {
    Seconds quick; ///< a lower bound without simulation
    /// The problem whose simulated step is a lower bound, for schedules that
    /// allow it.
    std::optional<StepProblem> problem;
    /// By stage: the step takes at least this plus all compute of the stage.
    std::vector<Seconds> fillDrain;
  };
  /// Returns the bounds of a prepared configuration that has a legal plan.
  StepBound stepOf(const Parallelism &config);

  /// Returns the bounds by layer. The configuration must be prepared and have a
  /// legal plan; recomputation counts only if all layers recompute.
  LayerTimes layerTimes(const Parallelism &config) const;

private:
  using MicroBatchKey = std::tuple<int, int, int, std::int64_t, Recompute>;
  static MicroBatchKey keyOf(const Parallelism &config, Recompute recompute) {
    return {config.tp, config.cp, config.ep, config.microBatch, recompute};
  }
  static std::vector<Recompute> kindsOf(const Parallelism &config);
  /// Mixes the bounds by the share of recomputed layers: the least of a sum is
  /// at least the sum of the least.
  MicroBatchBound boundOf(const Parallelism &config, double share) const;
  MicroBatchBound solve(const Parallelism &config, Recompute recompute,
                        SolverCache &solvers) const;
  PhaseTimes replicaTimes(const SegmentGraph &segment, const Setting &setting,
                          std::vector<bool> &paid) const;
  const std::vector<PhaseTimes> &replicaBounds(const Parallelism &config,
                                               const Setting &setting);
  Bytes carriedBytes(const std::vector<int> &tensors,
                     const SegmentGraph &segment,
                     const Parallelism &config) const;
  Bytes tied(const Setting &setting, const std::vector<PipelinePart> &parts,
             int stages) const;
  Seconds sequentialWork(const std::vector<PhaseTimes> &replica,
                         Seconds microBatch, const Parallelism &config) const;

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::map<MicroBatchKey, MicroBatchBound> microBatches;
  std::map<std::array<std::int64_t, 8>, std::vector<PhaseTimes>> replicas;
  std::array<SolverCache, 2> solversOf; ///< one per thread
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_RELAXATION_H
