//===- floors.h - The least that segments take ------------------*- C++ -*-===//
//
// A step never gets longer when what it is made of gets shorter
// (simulate/timeline.h), so a step of the least times that any plan has, each
// on its own, bounds every plan's step: the whole schedule, what hides beside
// compute and what does not, the ends of the pipeline that hold more. What many
// candidates share is computed once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_FLOORS_H
#define MTPLAN_PLANNER_SEARCH_FLOORS_H

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/pipeline_parts.h"
#include "planner/search/price.h"
#include "planner/search/search.h"

namespace mtplan::planner {

/// Of one micro-batch on the ranks of a stage.
struct MicroBatchFloor {
  bool isLegal = true; ///< some plan exists
  /// By segment, of one copy. No plan has less of either.
  std::vector<Seconds> forward, backward;
  Seconds all; ///< both phases of all copies, of one plan together
};

class Floors {
public:
  /// All must outlive this.
  Floors(const ModelGraph &theModel, const Machine &theMachine,
         const SearchOptions &theOptions);

  /// Solves what micro-batches of these candidates take, two threads at it.
  void prepare(const std::vector<Parallelism> &candidates);

  /// What a micro-batch takes at least through all stages, forward and back;
  /// +infinity: no plan is legal. Of a candidate that was prepared.
  Seconds microBatchOf(const Parallelism &how) const;

  /// The candidate's step made of floors.
  struct StepFloor {
    Seconds quick; ///< no plan's step is shorter
    /// Nor shorter than this, simulated; of schedules that it bounds.
    std::optional<StepProblem> problem;
    /// By stage: a step takes at least this and all that the stage computes.
    std::vector<Seconds> around;
  };
  /// Of a candidate that was prepared and has a legal plan.
  StepFloor stepOf(const Parallelism &how);

  /// By layer, with what a pipeline would not cut off it: the least that one
  /// micro-batch takes forward, and forward and back. Of a candidate that was
  /// prepared and has a legal plan; of its layers, those that recompute only
  /// where all do.
  struct LayerTimes {
    std::vector<Seconds> forward, both;
  };
  LayerTimes layerTimes(const Parallelism &how) const;

private:
  using MicroBatchKey = std::tuple<int, int, int, std::int64_t, Recompute>;
  static MicroBatchKey keyOf(const Parallelism &how, Recompute recompute) {
    return {how.tp, how.cp, how.ep, how.microBatch, recompute};
  }
  static std::vector<Recompute> kindsOf(const Parallelism &how);
  /// Where a share of the layers recompute: the least of a sum of two is no
  /// less than the sum of the least of both.
  MicroBatchFloor floorOf(const Parallelism &how, double share) const;
  MicroBatchFloor solve(const Parallelism &how, Recompute recompute,
                        SolverCache &solvers) const;
  PhaseTimes replicaTimes(const SegmentGraph &segment, const Setting &setting,
                          std::vector<bool> &paid) const;
  const std::vector<PhaseTimes> &replicaFloor(const Parallelism &how,
                                              const Setting &setting);
  Bytes handed(const std::vector<int> &tensors, const SegmentGraph &segment,
               const Parallelism &how) const;
  Bytes tied(const Setting &setting, const std::vector<PipelinePart> &parts,
             int stages) const;
  Seconds rowOfWork(const std::vector<PhaseTimes> &replica, Seconds microBatch,
                    const Parallelism &how) const;

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::map<MicroBatchKey, MicroBatchFloor> microBatches;
  std::map<std::array<std::int64_t, 8>, std::vector<PhaseTimes>> replicas;
  std::array<SolverCache, 2> solversOf; ///< one per thread
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_FLOORS_H
