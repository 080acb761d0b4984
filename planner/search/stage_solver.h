//===- stage_solver.h - The strategies of one pipeline stage ----*- C++ -*-===//
//
// What a stage holds is a chain of segments; the solver chooses a strategy for
// every operator in it so that the sum of all its streams' time is least within
// the memory of a device. Exact (planner/solve).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_H
#define MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_H

#include <deque>
#include <map>
#include <vector>

#include "planner/search/ledger.h"
#include "planner/search/phase_times.h"
#include "planner/search/pipeline_parts.h"
#include "planner/search/solver_cache.h"

namespace mtplan::planner {

struct StageSolution {
  enum class Outcome : std::uint8_t {
    fits,
    tooLarge,  ///< nothing that fits was found; `runs` need least
    abandoned, ///< no plan is faster than the caller asked for
    illegal    ///< some operator has no legal strategy
  } outcome = Outcome::illegal;
  /// In chain order, as if the stage held the first copies of each segment.
  std::vector<SegmentPlan> runs;
  std::vector<PhaseTimes> times; ///< of one copy, by run
  MemoryUse memory;
  Bytes reserve; ///< least workspace of any plan
  /// No plan of the stage that fits takes less, all streams added up.
  /// +infinity: nothing fits.
  Seconds lowerBound;
  bool optimal = false; ///< `runs` take no more than that
  bool limited = true;  ///< by memory; else they are the fastest of all
};

/// What was solved before, by everything that the answer depends on. Not shared
/// between threads.
class StageCache {
public:
  SolverCache solvers;

  /// Lets go of everything, if there is much; answers given so far are gone.
  void trim();

private:
  friend class StageSolver;
  using Key = std::vector<std::int64_t>;
  struct Known {
    double inFlight = 1.0;
    std::int64_t points = 0; ///< SolveLimits
    StageSolution solution;
  };
  /// Candidate's numbers, boundary, shared state, copies by segment.
  std::map<Key, std::deque<Known>> known; ///< references stay
  /// The same, but for micro-batches and copies; segment, who pays for what.
  std::map<Key, SegmentProblem> units;
};

/// A segment of which the stage holds copies, as a choice problem.
struct HeldSegment {
  int segment = 0;
  const SegmentProblem *problem = nullptr;
};

class StageSolver {
public:
  /// Model and cache must outlive this. `theSetting.inFlight` does not matter.
  /// \param theHow  what the setting is of; schedule and layers do not matter
  StageSolver(const ModelGraph &theGraph, const Setting &theSetting,
              const Parallelism &theHow, StageCache &theCache);

  /// \param copies    of each segment that the stage holds
  /// \param inFlight  see Setting
  /// The answer lives as long as the cache does.
  const StageSolution &solve(const std::vector<int> &copies, double inFlight,
                             SolveLimits limits);

private:
  StageCache::Key unitKey() const;
  std::vector<HeldSegment> problemsOf(const std::vector<int> &copies);
  StageSolution solveAnew(const std::vector<int> &copies, SolveLimits limits);
  MemoryUse measure(const StageSolution &solution) const;

  const ModelGraph &graph;
  Setting setting;
  std::optional<int> sharedState; ///< as asked for
  Parallelism how;
  StageCache &cache;
};

/// Room that every plan of a stage leaves for its workspace, whatever the plan
/// needs of it.
/// \param copies  of each segment that the stage holds
Bytes workspaceReserveOf(const ModelGraph &graph, const Setting &setting,
                         const std::vector<int> &copies);

/// Copies of each segment in all parts.
std::vector<int> copiesOf(const ModelGraph &graph,
                          const std::vector<PipelinePart> &parts);

/// Copies of a run that one part of the stage gets.
struct Share {
  int run = 0;
  int first = 0; ///< number of the first copy in the model
  int count = 1;
};

/// Deals runs out to the parts of the stage, in order.
std::vector<std::vector<Share>> dealOut(const ModelGraph &graph,
                                        const std::vector<SegmentPlan> &runs,
                                        const std::vector<PipelinePart> &parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_H
