//===- plan_pool.cpp - The plans that a search has found ------------------===//

#include "planner/search/plan_pool.h"

#include <algorithm>

namespace mtplan::planner {

bool isNearer(const PlannedCandidate &a, const PlannedCandidate &b) {
  if (a.fits != b.fits)
    return a.fits;
  return a.fits ? a.time.step < b.time.step
                : a.memory.total() < b.memory.total();
}

PlanPool::PlanPool(const SearchOptions &options)
    : top(at(options.top)), atMost(options.atMost),
      tolerance(options.tolerance),
      smallGap(options.tolerance > 0.0 ? 1e-3 : 1e-9) {}

double PlanPool::best() const {
  double least = kInfinity;
  for (const PlannedCandidate &plan : found)
    least = std::min(least, plan.time.step.value);
  return least;
}

double PlanPool::cutoff() const {
  if (found.size() < top)
    return slowestAllowed();
  std::vector<double> times;
  for (const PlannedCandidate &plan : found)
    times.push_back(plan.time.step.value);
  auto last = times.begin() + static_cast<std::ptrdiff_t>(top) - 1;
  std::ranges::nth_element(times, last);
  // A simpler plan within the tolerance may take the place of the fastest.
  return std::min(std::max(*last, best() * (1.0 + tolerance)),
                  slowestAllowed());
}

std::int64_t PlanPool::mostPoints(const PlannedCandidate &plan,
                                  double fastest) const {
  const double least = plan.lowerBound.value;
  if (plan.optimal || plan.sumsAreClosed || least >= fastest * (1 - 1e-9))
    return 0;
  return plan.addsUp && fastest > least * (1 + smallGap) ? kManyPoints
                                                         : kFewPoints;
}

PlanPool::Gaps PlanPool::nextGaps(std::size_t most) {
  spent.resize(found.size(), 0);
  const double least = best();
  Gaps gaps;
  for (std::int64_t points : {kFewPoints, kManyPoints}) {
    gaps.points = points;
    for (std::size_t i = 0; i < found.size(); ++i)
      if (spent[i] < points && points <= mostPoints(found[i], least))
        gaps.plans.push_back(i);
    if (!gaps.plans.empty())
      break;
  }
  std::ranges::stable_sort(
      gaps.plans, {}, [&](std::size_t i) { return found[i].lowerBound.value; });
  gaps.plans.resize(std::min(gaps.plans.size(), most));
  for (std::size_t i : gaps.plans)
    spent[i] = gaps.points;
  return gaps;
}

void PlanPool::narrow(std::size_t index, std::optional<PlannedCandidate> closed,
                      Seconds bound) {
  PlannedCandidate &gap = found[index];
  Seconds level = gap.lowerBound;
  if (!closed || !closed->fits)
    gap.lowerBound = bound;
  else if (closed->optimal || closed->time.step <= gap.time.step)
    gap = std::move(*closed);
  else
    gap.lowerBound = closed->lowerBound;
  gap.lowerBound = std::max(gap.lowerBound, level);
}

std::vector<PlannedCandidate> PlanPool::take() {
  std::ranges::stable_sort(found, {}, [](const PlannedCandidate &plan) {
    return plan.time.step.value;
  });
  spent.clear();
  return std::move(found);
}

} // namespace mtplan::planner
