//===- pareto.cpp - Trade-offs between time and memory ----------*- C++ -*-===//
//
// A point that is dropped because of rounding costs at most `indifference`, so
// a chain of n filters loses at most n times that.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/pareto.h"

#include <algorithm>
#include <limits>

namespace mtplan::planner {

namespace {

/// Drops most of what keepPareto would drop, without sorting: a point that is
/// no faster than one in a strictly lower band of memory. It is exact, because
/// such a point is not kept and changes nothing for those that are. O(n).
void dropDominated(std::vector<ParetoPoint> &points) {
  constexpr std::size_t kFew = 256, kMostBands = 1 << 14;
  if (points.size() < kFew)
    return;
  std::size_t bands = std::min(2 * points.size(), kMostBands);
  auto [least, most] =
      std::minmax_element(points.begin(), points.end(),
                          [](const ParetoPoint &a, const ParetoPoint &b) {
                            return a.memory < b.memory;
                          });
  double base = least->memory, span = most->memory - base;
  if (!(span > 0.0))
    return;
  auto bandOf = [&](const ParetoPoint &point) {
    double band = (point.memory - base) / span * static_cast<double>(bands - 1);
    return static_cast<std::size_t>(band);
  };
  // fastestBelow[b]: least time over all bands before b.
  std::vector<double> fastestBelow(bands + 1,
                                   std::numeric_limits<double>::infinity());
  for (const ParetoPoint &point : points) {
    double &fastest = fastestBelow[bandOf(point) + 1];
    fastest = std::min(fastest, point.time);
  }
  for (std::size_t band = 1; band <= bands; ++band)
    fastestBelow[band] = std::min(fastestBelow[band], fastestBelow[band - 1]);
  std::erase_if(points, [&](const ParetoPoint &point) {
    return fastestBelow[bandOf(point)] <= point.time;
  });
}

} // namespace

void keepPareto(std::vector<ParetoPoint> &points, double indifference) {
  if (points.size() < 2)
    return;
  dropDominated(points);
  std::stable_sort(points.begin(), points.end(),
                   [](const ParetoPoint &a, const ParetoPoint &b) {
                     if (a.memory != b.memory)
                       return a.memory < b.memory;
                     return a.time < b.time;
                   });
  double fastest = std::numeric_limits<double>::infinity();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].time < fastest - indifference) {
      fastest = points[i].time;
      points[kept++] = points[i];
    }
  points.resize(kept);
}

void FrontMerger::merge(const std::vector<ParetoPoint> &earlier,
                        const std::vector<ParetoPoint> &later) {
  merged.clear();
  double fastest = std::numeric_limits<double>::infinity();
  auto a = earlier.begin(), b = later.begin();
  while (a != earlier.end() || b != later.end()) {
    bool takeLater = a == earlier.end();
    if (!takeLater && b != later.end())
      takeLater =
          b->memory != a->memory ? b->memory < a->memory : b->time < a->time;
    const ParetoPoint &next = takeLater ? *b++ : *a++;
    if (next.time < fastest) {
      fastest = next.time;
      merged.push_back(next);
    }
  }
}

void FrontMerger::add(std::vector<ParetoPoint> &front) {
  for (std::size_t level = 0;; ++level) {
    if (level == levels.size())
      levels.emplace_back();
    if (levels[level].empty()) {
      levels[level].swap(front);
      front.clear();
      return;
    }
    merge(levels[level], front);
    front.swap(merged);
    levels[level].clear();
  }
}

void FrontMerger::take(double indifference, std::vector<ParetoPoint> &points) {
  points.clear();
  for (std::vector<ParetoPoint> &level : levels) {
    if (level.empty())
      continue;
    merge(level, points);
    points.swap(merged);
    level.clear();
  }
  double fastest = std::numeric_limits<double>::infinity();
  std::erase_if(points, [&](const ParetoPoint &point) {
    if (!(point.time < fastest - indifference))
      return true;
    fastest = point.time;
    return false;
  });
}

void ParetoSets::clear() {
  points.clear();
  begin.assign(1, 0);
}

void ParetoSets::append(const std::vector<ParetoPoint> &entry) {
  points.insert(points.end(), entry.begin(), entry.end());
  begin.push_back(points.size());
}

void ParetoSets::appendByExcess(const std::vector<ParetoPoint> &entry) {
  points.insert(points.end(), entry.begin(), entry.end());
  std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(begin.back()),
                   points.end(),
                   [](const ParetoPoint &a, const ParetoPoint &b) {
                     return a.excess < b.excess;
                   });
  begin.push_back(points.size());
}

} // namespace mtplan::planner
