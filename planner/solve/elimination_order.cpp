//===- elimination_order.cpp - The order of elimination ---------*- C++ -*-===//
//
// Eliminating a variable joins its neighbours into a clique. Its score is
// either the size of that clique's table or the weight of the edges it adds;
// only the neighbours' scores (and, for fill, theirs) change.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/elimination_order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

namespace mtplan::planner {
namespace {

/// Finding an order takes about as long as joining this many entries, so a
/// search for a better one may cost no more than the few eliminations that it
/// serves.
constexpr double kWorkPerRepetition = 300e3;
constexpr double kMostRepetitions = 16.0;

class Graph {
public:
  Graph(const std::vector<int> &sizes,
        const std::vector<std::vector<int>> &scopes,
        const std::vector<int> &keep)
      : domains(sizes), adjacent(sizes.size()),
        linked(sizes.size() * sizes.size(), 0), present(sizes.size(), 1) {
    for (int variable : keep)
      present[variable] = 0;
    for (const std::vector<int> &scope : scopes)
      for (int a : scope)
        for (int b : scope)
          link(a, b);
  }

  bool has(int variable) const { return present[variable] != 0; }
  const std::vector<int> &neighbours(int variable) const {
    return adjacent[variable];
  }

  double tableSize(int variable) const {
    double size = domains[variable];
    for (int other : adjacent[variable])
      size *= domains[other];
    return size;
  }

  double fill(int variable) const {
    double weight = 0.0;
    const std::vector<int> &fillDrain = adjacent[variable];
    for (std::size_t i = 0; i < fillDrain.size(); ++i)
      for (std::size_t j = i + 1; j < fillDrain.size(); ++j)
        if (!isLinked(fillDrain[i], fillDrain[j]))
          weight += static_cast<double>(domains[fillDrain[i]]) *
                    domains[fillDrain[j]];
    return weight;
  }

  void eliminate(int variable) {
    present[variable] = 0;
    std::vector<int> fillDrain = std::move(adjacent[variable]);
    adjacent[variable].clear();
    for (int a : fillDrain) {
      adjacent[a].erase(
          std::find(adjacent[a].begin(), adjacent[a].end(), variable));
      for (int b : fillDrain)
        link(a, b);
    }
  }

private:
  bool isLinked(int a, int b) const {
    return linked[static_cast<std::size_t>(a) * domains.size() +
                  static_cast<std::size_t>(b)] != 0;
  }
  void link(int a, int b) {
    if (a == b || isLinked(a, b))
      return;
    linked[static_cast<std::size_t>(a) * domains.size() +
           static_cast<std::size_t>(b)] = 1;
    adjacent[a].push_back(b);
  }

  const std::vector<int> &domains;
  std::vector<std::vector<int>> adjacent;
  std::vector<char> linked;
  std::vector<char> present; ///< neither kept nor eliminated yet
};

/// Eliminates the variable of least `score(graph, variable)` next. Stops early
/// above `workLimit`.
template <typename Score>
EliminationOrder greedy(Graph graph, std::size_t count, bool scoreReachesFar,
                        double workLimit, const Score &score) {
  EliminationOrder result;
  std::vector<double> scores(count);
  for (std::size_t v = 0; v < count; ++v)
    if (graph.has(static_cast<int>(v)))
      scores[v] = score(graph, static_cast<int>(v));
  while (result.work <= workLimit) {
    int best = -1;
    for (int v = 0; v < static_cast<int>(count); ++v)
      if (graph.has(v) && (best < 0 || scores[v] < scores[best]))
        best = v;
    if (best < 0)
      return result;
    double size = graph.tableSize(best);
    std::vector<int> fillDrain = graph.neighbours(best);
    result.order.push_back(best);
    result.work += size;
    result.largest = std::max(result.largest, size);
    result.width = std::max(result.width, static_cast<int>(fillDrain.size()));
    graph.eliminate(best);
    for (int a : fillDrain) {
      if (graph.has(a))
        scores[a] = score(graph, a);
      if (scoreReachesFar)
        for (int b : graph.neighbours(a))
          if (graph.has(b))
            scores[b] = score(graph, b);
    }
  }
  result.work = std::numeric_limits<double>::infinity();
  return result;
}

} // namespace

EliminationOrder planElimination(const std::vector<int> &domains,
                                 const std::vector<std::vector<int>> &scopes,
                                 const std::vector<int> &keep) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  Graph graph(domains, scopes, keep);
  auto byTable = [](const Graph &g, int v) { return g.tableSize(v); };
  EliminationOrder best =
      greedy(graph, domains.size(), false, kNoLimit, byTable);
  double repetitions =
      std::min(best.work / kWorkPerRepetition, kMostRepetitions);

  auto consider = [&best](EliminationOrder candidate) {
    if (candidate.work < best.work)
      best = std::move(candidate);
  };
  auto byFill = [](const Graph &g, int v) { return g.fill(v); };
  consider(greedy(graph, domains.size(), true, best.work, byFill));

  std::mt19937_64 random(1);
  auto unit = [&random] {
    return static_cast<double>(random() >> 11U) * 0x1p-53;
  };
  auto byTableRoughly = [&unit](const Graph &g, int v) {
    return g.tableSize(v) * (1.0 + 4.0 * unit());
  };
  auto byFillRoughly = [&unit](const Graph &g, int v) {
    return (g.fill(v) + 1.0) * (1.0 + unit());
  };
  for (int i = 0; i < static_cast<int>(repetitions); ++i) {
    consider(greedy(graph, domains.size(), false, best.work, byTableRoughly));
    consider(greedy(graph, domains.size(), true, best.work, byFillRoughly));
  }
  return best;
}

} // namespace mtplan::planner
