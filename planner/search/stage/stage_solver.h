//===- stage_solver.h - The strategies of one pipeline stage ----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_STAGE_STAGE_SOLVER_H
#define MTPLAN_PLANNER_SEARCH_STAGE_STAGE_SOLVER_H

#include <deque>
#include <map>
#include <vector>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/space/pipeline_parts.h"
#include "planner/search/stage/workspace_limit.h"
#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Holds the strategies of a stage, or the reason why there are none.
struct StageSolution {
  enum class Outcome : std::uint8_t {
    fits,
    tooLarge,  ///< no plan that fits was found; `runs` are the nearest
    abandoned, ///< no plan is faster than the cutoff
    illegal    ///< some operator has no legal strategy
  } outcome = Outcome::illegal;
  /// Lists the runs in chain order, as if the stage held the first repeats of
  /// each segment.
  std::vector<SegmentPlan> runs;
  std::vector<PhaseTimes> times; ///< by run: the times of one repeat
  MemoryUse memory;
  Bytes reserve; ///< for the workspace
  /// These are lower bounds of the sum of times; +infinity if no plan fits.
  /// `looseBound` holds for every plan. `lowerBound` holds for plans with the
  /// cheapest layout changes, weighted by Setting::sumWeights. Costlier layout
  /// changes may need less workspace, because their intermediate layouts may be
  /// smaller.
  Seconds lowerBound, looseBound;
  bool optimal = false; ///< whether `runs` reach the lower bound
  bool limited = true;  ///< false: `runs` are fastest for any memory limit
};

/// Caches stage solutions. Each thread needs its own cache.
class StageCache {
public:
  SolverCache solvers;

  /// Clears a large cache, which invalidates all returned solutions.
  void trim();

private:
  friend class StageSolver;
  using Key = std::vector<std::int64_t>;
  struct Solved {
    double inFlight = 1.0;
    std::int64_t points = 0; ///< see SolveLimits
    StageSolution solution;
  };
  /// The key is StageSolver::stageKey(). A deque keeps references to solutions
  /// valid.
  std::map<Key, std::deque<Solved>> known;
  /// The key is StageSolver::unitKey(), the weights, the segment and the
  /// owners of parameters.
  std::map<Key, SegmentProblem> units;
  /// The key is StageSolver::stageKey() and the micro-batches in flight.
  std::map<Key, Bytes> leastMemories;
};

/// Solves stages, which are chains of segments, exactly (planner/solve). Among
/// the strategies that fit, the solver chooses those with the least sum of the
/// times of all streams.
class StageSolver {
public:
  /// Model and cache must outlive the solver. `theSetting.inFlight` is ignored.
  /// \param theConfig  the configuration of the setting; its schedule and
  /// layers are ignored
  StageSolver(const ModelGraph &theGraph, const Setting &theSetting,
              const Parallelism &theConfig, StageCache &theCache);

  /// Returns the solution, which is valid until StageCache::trim.
  /// \param repeats  the number of repeats of each segment on the stage
  const StageSolution &solve(const std::vector<int> &repeats, double inFlight,
                             SolveLimits limits);

  /// Returns a lower bound of the memory of every plan of the stage, with any
  /// layout between stages and any state of shared parameters; infinity if some
  /// operator has no legal strategy.
  Bytes leastMemory(const std::vector<int> &repeats, double inFlight);

  /// Returns, by segment, the least time that one repeat takes in a step, over
  /// all plans of the stage; 0 for segments that the stage does not have.
  /// \pre Setting::firstWeights is empty
  std::vector<Seconds> leastTimes(const std::vector<int> &repeats);

private:
  StageCache::Key unitKey() const;
  StageCache::Key stageKey(const std::vector<int> &repeats) const;
  std::vector<HeldSegment> problemsOf(const std::vector<int> &repeats);
  const SegmentProblem &unitOf(int segment, const SumWeights &weights,
                               const std::vector<bool> &owner);
  ChainProblem chainOf(const std::vector<HeldSegment> &held,
                       const std::vector<int> &repeats) const;
  Bytes reserveOf(const std::vector<HeldSegment> &held,
                  const std::vector<int> &repeats) const;
  StageSolution solveStage(const std::vector<int> &repeats, SolveLimits limits);
  MemoryUse measure(const StageSolution &solution) const;
  class WorkspaceSearch;

  const ModelGraph &graph;
  Setting setting;
  std::optional<int> sharedState; ///< the caller's Setting::sharedState
  Parallelism config;
  StageCache &cache;
};

/// Returns the number of repeats of each segment in all parts.
std::vector<int> repeatsOf(const ModelGraph &graph,
                           const std::vector<PipelinePart> &parts);

/// Describes the repeats of a run that are in one chunk of the stage.
struct RunSlice {
  int run = 0;
  int first = 0; ///< number of the first repeat in the model
  int count = 1;
};

/// Splits a stage's runs among the chunks of the stage, in order.
std::vector<std::vector<RunSlice>>
splitRuns(const ModelGraph &graph, const std::vector<SegmentPlan> &runs,
          const std::vector<PipelinePart> &parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_STAGE_STAGE_SOLVER_H
