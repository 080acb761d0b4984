//===- relaxation.h - Lower bounds from independent segments ----*- C++ -*-===//
//
// Computes lower bounds from a relaxation: every segment, phase and parameter
// has its least time over all plans, independently of the others. Shorter tasks
// never lengthen a step (simulate/timeline.h), so the simulated step of the
// least times is a lower bound that includes schedule, overlap and uneven
// stages. Values that many configurations share are computed once.
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
#include "planner/search/bound/path_bound.h"
#include "planner/search/bound/replica_bounds.h"
#include "planner/search/price/price.h"
#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Holds lower bounds of one micro-batch on the ranks of a stage.
struct MicroBatchBound {
  bool isLegal = true; ///< whether some plan exists
  /// Hold, by segment, the least times of one repeat over all plans.
  std::vector<Seconds> forward, backward;
  /// Hold the two parts of backward. Their sum may be less than `backward`.
  /// Both lists are empty unless a zero-bubble schedule is allowed.
  std::vector<Seconds> inputGradient, weightGradient;
  /// Holds the least time of forward and inputGradient together, or is empty.
  std::vector<Seconds> withoutWeights;
  /// Holds the least time of both phases together; see LeastStep::compute.
  std::vector<Seconds> both;
  Seconds all; ///< the least time of both phases of all repeats
};

class Relaxation {
public:
  /// All arguments must outlive the object.
  Relaxation(const ModelGraph &theModel, const Machine &theMachine,
             const SearchOptions &theOptions);

  /// Solves the micro-batches of these configurations on two threads, with each
  /// of these layouts between segments. The bounds of a micro-batch that is too
  /// large to be solved, or that is not solved because SearchOptions::stop
  /// returns true, are 0.
  void prepare(const std::vector<Parallelism> &candidates,
               const std::vector<Boundary> &boundaries = {std::nullopt});

  /// Returns a lower bound of a micro-batch through all stages, forward and
  /// backward; +infinity if no plan is legal. The configuration must be
  /// prepared.
  Seconds microBatchOf(const Parallelism &config,
                       const Boundary &boundary = std::nullopt) const;

  struct StepBound {
    Seconds quick;                  ///< a lower bound without simulation
    LeastStep least;                ///< its simulated step is a lower bound
    std::vector<StageBound> stages; ///< by stage
    /// Holds, by segment, lower bounds of the times of one repeat, if there is
    /// one stage.
    std::vector<PhaseTimes> times;
  };
  /// Returns the bounds of a prepared configuration that has a legal plan.
  StepBound stepOf(const Parallelism &config,
                   const Boundary &boundary = std::nullopt);

  /// Returns the bounds by layer. The configuration must be prepared and have a
  /// legal plan; recomputation counts only if all layers recompute.
  LayerTimes layerTimes(const Parallelism &config) const;

private:
  using MicroBatchKey =
      std::tuple<int, int, int, int, std::int64_t, Recompute, Boundary>;
  static MicroBatchKey keyOf(const Parallelism &config, Recompute recompute,
                             const Boundary &boundary) {
    // If tp is 1, `boundary` has no effect.
    return {config.tp,
            config.tp2,
            config.cp,
            config.ep,
            config.microBatch,
            recompute,
            config.tp > 1 ? boundary : std::nullopt};
  }
  static std::vector<Recompute> kindsOf(const Parallelism &config);
  bool mayDivide() const; ///< whether a schedule may divide backward
  /// Returns the mean of the bounds without and with recomputation, weighted by
  /// the share of recomputed layers. The mean is a lower bound, because the
  /// minimum of a sum is at least the sum of the minima.
  MicroBatchBound boundOf(const Parallelism &config, double share,
                          const Boundary &boundary) const;
  MicroBatchBound solve(const Parallelism &config, Recompute recompute,
                        const Boundary &boundary, SolverCache &solvers) const;
  /// Returns lower bounds of the times of one repeat, by stage and segment.
  /// Backward is bounded as a whole or, if `isDivided`, as the sum of its two
  /// parts.
  std::vector<std::vector<PhaseTimes>>
  leastTimes(const Parallelism &config, const Setting &setting,
             const std::vector<PipelinePart> &parts, bool isDivided);
  StepProblem relaxedStep(const Parallelism &config, const Setting &setting,
                          const std::vector<PipelinePart> &parts,
                          const std::vector<std::vector<PhaseTimes>> &times);
  void setCompute(LeastStep &least, const Parallelism &config,
                  const Setting &setting,
                  const std::vector<PipelinePart> &parts);
  Bytes carriedBytes(const std::vector<int> &tensors,
                     const SegmentGraph &segment, const Parallelism &config,
                     const Boundary &boundary) const;
  /// Returns a lower bound of the bytes of all tied gradients.
  Bytes tied(const Setting &setting, const std::vector<PipelinePart> &parts,
             int stages) const;
  Seconds sequentialWork(const std::vector<PhaseTimes> &replica,
                         Seconds microBatch, const Parallelism &config) const;

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::map<MicroBatchKey, MicroBatchBound> microBatches;
  ReplicaBounds replicas;
  std::array<SolverCache, 2> solversOf; ///< one per thread
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_RELAXATION_H
