//===- chain_path.cpp - Shortest path over boundary states ------*- C++ -*-===//
//
// Viterbi's algorithm; the path is recovered backwards from the distances.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_path.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mtplan::planner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Two sums of the same terms in different orders differ by less, relatively.
constexpr double kRounding = 1e-14;

} // namespace

void distancesFromStart(const std::vector<Stage> &stages, Distances &result) {
  result.resize(stages.size() + 1);
  result[0].assign(stages[0].in, 0.0);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage &stage = stages[i];
    std::vector<double> &next = result[i + 1];
    next.assign(stage.out, kInfinity);
    const double *cost = stage.cost;
    for (std::size_t s = 0; s < stage.in; ++s, cost += stage.out) {
      double before = result[i][s];
      if (before == kInfinity)
        continue;
      for (std::size_t t = 0; t < stage.out; ++t)
        next[t] = std::min(next[t], before + cost[t]);
    }
  }
}

void distancesToEnd(const std::vector<Stage> &stages, Distances &result) {
  result.resize(stages.size() + 1);
  result.back().assign(stages.back().out, 0.0);
  for (std::size_t i = stages.size(); i-- > 0;) {
    const Stage &stage = stages[i];
    const std::vector<double> &after = result[i + 1];
    result[i].assign(stage.in, kInfinity);
    const double *cost = stage.cost;
    for (std::size_t s = 0; s < stage.in; ++s, cost += stage.out) {
      double least = kInfinity;
      for (std::size_t t = 0; t < stage.out; ++t)
        least = std::min(least, cost[t] + after[t]);
      result[i][s] = least;
    }
  }
}

std::vector<std::size_t> shortestPath(const std::vector<Stage> &stages,
                                      const Distances &fromStart) {
  const std::vector<double> &last = fromStart.back();
  auto end = std::min_element(last.begin(), last.end());
  if (*end == kInfinity)
    return {};
  std::vector<std::size_t> path(stages.size() + 1);
  path.back() = static_cast<std::size_t>(end - last.begin());
  for (std::size_t i = stages.size(); i-- > 0;) {
    const Stage &stage = stages[i];
    std::size_t to = path[i + 1];
    auto through = [&](std::size_t s) {
      return fromStart[i][s] + stage.cost[s * stage.out + to];
    };
    double reached = fromStart[i + 1][to];
    double enough = reached + kRounding * std::abs(reached);
    bool continues = i > 0 && stages[i - 1].link == stage.link;
    bool follows = i + 1 < stages.size() && stages[i + 1].link == stage.link;
    if ((continues || follows) && to < stage.in && through(to) <= enough) {
      path[i] = to;
      continue;
    }
    std::size_t from = 0;
    while (from + 1 < stage.in && !(through(from) <= enough))
      ++from;
    path[i] = from;
  }
  return path;
}

} // namespace mtplan::planner
