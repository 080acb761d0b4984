//===- stage_solver.h - The strategies of one pipeline stage ----*- C++ -*-===//
//
// What a stage holds is a chain of segments; the solver chooses a strategy for
// every operator in it so that the sum of all its streams' time is least within
// the memory of a device. Exact (planner/solve).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_H
#define MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_H

#include <vector>

#include "planner/search/ledger.h"
#include "planner/search/pipeline_parts.h"
#include "planner/search/solver_cache.h"

namespace mtplan::planner {

struct StageSolution {
  enum class Outcome : std::uint8_t {
    fits,
    tooLarge,  ///< nothing that fits was found; `plans` need least
    abandoned, ///< no plan is faster than the caller asked for
    illegal    ///< some operator has no legal strategy
  } outcome = Outcome::illegal;
  std::vector<std::vector<SegmentPlan>> plans; ///< by part of the stage
  MemoryUse memory;
  /// No plan of the stage that fits takes less, all streams added up.
  /// +infinity: nothing fits.
  Seconds lowerBound;
  bool optimal = false; ///< `plans` take no more than that
};

class StageSolver {
public:
  /// All must outlive this. `setting.inFlight` is set by solve().
  StageSolver(const ModelGraph &graph, const Setting &setting,
              SolverCache &solvers);

  /// \param parts     that the stage holds, in the order it runs them
  /// \param inFlight  see Setting
  StageSolution solve(const std::vector<PipelinePart> &parts, double inFlight,
                      SolveLimits limits);

private:
  const ModelGraph &graph;
  Setting setting;
  SolverCache &solvers;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_H
