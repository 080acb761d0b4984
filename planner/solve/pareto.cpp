//===- pareto.cpp - Trade-offs between time and memory ----------*- C++ -*-===//
//
// A point that is dropped for rounding's sake costs at most `indifference`, so
// a chain of n filters loses at most n times that.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/pareto.h"

#include <algorithm>
#include <limits>

namespace mtplan::planner {

void keepPareto(std::vector<ParetoPoint> &points, double indifference) {
  if (points.size() < 2)
    return;
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

void ParetoSets::clear() {
  points.clear();
  begin.assign(1, 0);
}

void ParetoSets::append(const std::vector<ParetoPoint> &entry) {
  points.insert(points.end(), entry.begin(), entry.end());
  std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(begin.back()),
                   points.end(),
                   [](const ParetoPoint &a, const ParetoPoint &b) {
                     return a.excess < b.excess;
                   });
  begin.push_back(points.size());
}

} // namespace mtplan::planner
