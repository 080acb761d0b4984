//===- planned_candidate.h - A configuration with its plan ------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PLANNED_CANDIDATE_H
#define MTPLAN_PLANNER_SEARCH_PLANNED_CANDIDATE_H

#include <vector>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/price.h"

namespace mtplan::planner {

/// Lists the runs of each virtual stage, in model order.
using PlannedParts = std::vector<std::vector<SegmentPlan>>;

struct PlannedCandidate {
  Parallelism config;
  PlannedParts parts;
  StepTime time;
  /// Holds the memory of the stage that needs most device memory. `memory.host`
  /// is the maximum over all stages.
  MemoryUse memory;
  int fullestStage = 0;
  bool fits = false;
  Seconds lowerBound; ///< no plan of this configuration is faster
  bool optimal = false;
  /// Says whether the solver proved its minima: of the sum that this plan
  /// minimises, and of all forms (StepForm).
  bool sumsAreClosed = false;
  bool addsUp = false; ///< whether the step is that sum: nothing overlaps

  std::vector<SegmentPlan> plans() const;
};

/// Returns a plan's step as a problem for the simulator.
/// \param graph  scaled to one micro-batch of all replicas
StepProblem stepProblemOf(const ModelGraph &graph, const PlannedParts &parts,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps);

/// Returns the memory of one rank of each stage, including reserved workspace.
std::vector<MemoryUse> memoryByStage(const ModelGraph &graph,
                                     const PlannedParts &parts,
                                     const Setting &setting,
                                     const Parallelism &config);

/// Returns the plan as the search would return it. The lower bound is the
/// plan's step, since no other plan is known.
PlannedCandidate priceGiven(const ModelGraph &graph,
                            const SearchOptions &options,
                            const Machine &machine, const Parallelism &config,
                            PlannedParts parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PLANNED_CANDIDATE_H
