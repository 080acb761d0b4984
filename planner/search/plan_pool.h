//===- plan_pool.h - The plans that a search has found ----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PLAN_POOL_H
#define MTPLAN_PLANNER_SEARCH_PLAN_POOL_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/integers.h"
#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// Returns whether `a` is nearer to a usable plan than `b`. A plan that fits is
/// nearer than one that does not. If both plans fit, the faster one is nearer;
/// if neither does, the one that needs less memory is.
bool isNearer(const PlannedCandidate &a, const PlannedCandidate &b);

/// Keeps one plan and one lower bound per solved configuration, and decides
/// which gaps between plan and bound are worth closing.
class PlanPool {
public:
  /// \param options  provides top, atMost and tolerance; without a tolerance,
  /// no gap is small
  explicit PlanPool(const SearchOptions &options);

  void add(PlannedCandidate plan) { found.push_back(std::move(plan)); }

  const std::vector<PlannedCandidate> &plans() const { return found; }

  /// Returns the time of the fastest plan; +infinity if there is none.
  double best() const;

  /// Returns the time above which plans are useless: the larger of the slowest
  /// listed time and the fastest time plus the tolerance, but at most
  /// slowestAllowed(). While the list is not full, slowestAllowed() applies.
  double cutoff() const;
  /// Returns the cutoff for a plan that is useless unless it is the fastest.
  double cutoffOfFastest() const { return std::min(best(), slowestAllowed()); }
  double slowestAllowed() const { return atMost.value * (1 + 1e-9); }

  /// Lists the plans whose gaps are closed next, with `points` as
  /// SolveLimits::points of each.
  struct Gaps {
    std::vector<std::size_t> plans; ///< indices, ascending by lower bound
    std::int64_t points = 0;
  };
  /// Returns at most `most` plans whose lower bound is below the best time, or
  /// none if no further points are worth spending. Each plan first gets few
  /// points, which close most gaps. Many points follow only if the gap is not
  /// small and the plan's step is the sum that the solver minimises.
  Gaps nextGaps(std::size_t most);

  /// Returns whether a plan of the configuration may be faster than all plans
  /// so far by more than a small gap.
  bool hasGap(std::size_t index) const {
    return best() > found[index].lowerBound.value * (1 + smallGap);
  }

  /// Updates a plan with its configuration's new bound and new solution, if
  /// any.
  void narrow(std::size_t index, std::optional<PlannedCandidate> closed,
              Seconds bound);

  /// Returns all plans, fastest first.
  std::vector<PlannedCandidate> take();

private:
  std::int64_t mostPoints(const PlannedCandidate &plan, double fastest) const;

  std::size_t top;
  Seconds atMost;
  double tolerance;
  double smallGap; ///< the share of the step up to which a gap is small
  std::vector<PlannedCandidate> found; ///< in the order of add()
  std::vector<std::int64_t> spent; ///< by plan: the points of its last attempt
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PLAN_POOL_H
