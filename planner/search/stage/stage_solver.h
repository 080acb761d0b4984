//===- stage_solver.h - The strategies of one pipeline stage ----*- C++ -*-===//
//
// A stage is a chain of segments. The solver chooses a strategy for every
// operator so that the sum of all streams' times is least within the device's
// memory. It is exact (planner/solve).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_STAGE_STAGE_SOLVER_H
#define MTPLAN_PLANNER_SEARCH_STAGE_STAGE_SOLVER_H

#include <deque>
#include <map>
#include <vector>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/space/pipeline_parts.h"
#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Returns the link of `repeats` repeats, its numbers scaled from one
/// micro-batch to those of a step.
Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int repeats);

/// Builds a segment's problem and scales its link.
SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner);

/// The strategies of a stage, or the reason why there are none.
struct StageSolution {
  enum class Outcome : std::uint8_t {
    fits,
    tooLarge,  ///< no plan found that fits; `runs` need least memory
    abandoned, ///< no plan beats the cutoff
    illegal    ///< some operator has no legal strategy
  } outcome = Outcome::illegal;
  /// In chain order, as if the stage held the first repeats of each segment.
  std::vector<SegmentPlan> runs;
  std::vector<PhaseTimes> times; ///< of one repeat, by run
  MemoryUse memory;
  Bytes reserve; ///< a lower bound of the workspace
  /// No plan of the stage that fits has a smaller sum of times; +infinity if
  /// nothing fits.
  Seconds lowerBound;
  bool optimal = false; ///< `runs` reach the lower bound
  bool limited = true;  ///< memory matters; else `runs` are the fastest of all
};

/// Solutions by everything that they depend on. It is not shared between
/// threads.
class StageCache {
public:
  SolverCache solvers;

  /// Clears a large cache; answers given so far become invalid.
  void trim();

private:
  friend class StageSolver;
  using Key = std::vector<std::int64_t>;
  struct Solved {
    double inFlight = 1.0;
    std::int64_t points = 0; ///< see SolveLimits
    StageSolution solution;
  };
  /// By the configuration's numbers, boundary, shared state and repeats of each
  /// segment.
  std::map<Key, std::deque<Solved>> known; ///< references stay valid
  /// By the same without micro-batches and repeats, by segment and who pays.
  std::map<Key, SegmentProblem> units;
};

/// A segment on the stage, as a choice problem.
struct HeldSegment {
  int segment = 0;
  const SegmentProblem *problem = nullptr;
};

/// Solves stages of one configuration.
class StageSolver {
public:
  /// Model and cache must outlive the solver. `theSetting.inFlight` does not
  /// matter.
  /// \param theConfig  the setting's configuration; schedule and layers do not
  /// matter
  StageSolver(const ModelGraph &theGraph, const Setting &theSetting,
              const Parallelism &theConfig, StageCache &theCache);

  /// Returns the solution, which lives as long as the cache.
  /// \param repeats   of each segment on the stage
  /// \param inFlight  see Setting
  const StageSolution &solve(const std::vector<int> &repeats, double inFlight,
                             SolveLimits limits);

private:
  StageCache::Key unitKey() const;
  std::vector<HeldSegment> problemsOf(const std::vector<int> &repeats);
  StageSolution solveStage(const std::vector<int> &repeats, SolveLimits limits);
  MemoryUse measure(const StageSolution &solution) const;

  const ModelGraph &graph;
  Setting setting;
  std::optional<int> sharedState; ///< as the caller asked
  Parallelism config;
  StageCache &cache;
};

/// Returns the bytes that every plan of a stage reserves for its workspace.
/// \param repeats  of each segment on the stage
Bytes workspaceReserveOf(const ModelGraph &graph, const Setting &setting,
                         const std::vector<int> &repeats);

/// Returns the repeats of each segment over all parts.
std::vector<int> repeatsOf(const ModelGraph &graph,
                           const std::vector<PipelinePart> &parts);

/// The repeats of a run that one chunk of the stage gets.
struct RunSlice {
  int run = 0;
  int first = 0; ///< number of the first repeat in the model
  int count = 1;
};

/// Splits runs among the chunks of the stage, in order.
std::vector<std::vector<RunSlice>>
splitRuns(const ModelGraph &graph, const std::vector<SegmentPlan> &runs,
          const std::vector<PipelinePart> &parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_STAGE_STAGE_SOLVER_H
