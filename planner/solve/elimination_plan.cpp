//===- elimination_plan.cpp - Live values, order of elimination -----------===//
//
// Only tables with an infinity can remove values, and most tables have none.
//
// Eliminating a variable connects all its neighbours to each other, as a
// clique. The variable's score is the size of the clique's table, or the weight
// of the added edges. Only the scores of neighbours (and, for fill, of their
// neighbours) change.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/elimination_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>

namespace mtplan::planner {

namespace {

using Flags = std::vector<std::vector<char>>;

/// Removes the values that a table with an infinity forbids. The table is read
/// in rows along its last variable.
class Reviser {
public:
  Reviser(const CostTable &theTable, const std::vector<int> &domains)
      : table(theTable), value(theTable.scope.size(), 0),
        support(theTable.scope.size()) {
    for (std::size_t p = 0; p < support.size(); ++p)
      support[p].resize(static_cast<std::size_t>(domains[table.scope[p]]));
  }

  const std::vector<int> &scope() const { return table.scope; }

  /// Removes the values from `live` that have no finite entry in the table;
  /// returns whether any value was removed.
  bool revise(Flags &live) {
    for (std::vector<char> &flags : support)
      std::fill(flags.begin(), flags.end(), 0);
    std::fill(value.begin(), value.end(), 0);
    std::size_t last = support.size() - 1;
    std::size_t length = support[last].size();
    for (std::size_t row = 0; row < table.time.size(); row += length) {
      bool possible = true;
      for (std::size_t p = 0; possible && p < last; ++p)
        possible = live[table.scope[p]][value[p]] != 0;
      if (possible)
        reviseRow(table.time.data() + row, live[table.scope[last]]);
      for (std::size_t p = last; p-- > 0;) {
        if (++value[p] < static_cast<int>(support[p].size()))
          break;
        value[p] = 0;
      }
    }
    bool changed = false;
    for (std::size_t p = 0; p < support.size(); ++p) {
      std::vector<char> &flags = live[table.scope[p]];
      for (std::size_t a = 0; a < flags.size(); ++a)
        if (flags[a] != 0 && support[p][a] == 0) {
          flags[a] = 0;
          changed = true;
        }
    }
    return changed;
  }

private:
  void reviseRow(const double *time, const std::vector<char> &live) {
    std::vector<char> &supported = support.back();
    int any = 0;
    for (std::size_t a = 0; a < supported.size(); ++a) {
      int here = static_cast<int>(time[a] < kInfinity) & live[a];
      supported[a] = static_cast<char>(supported[a] | here);
      any |= here;
    }
    if (any != 0)
      for (std::size_t p = 0; p + 1 < support.size(); ++p)
        support[p][value[p]] = 1;
  }

  const CostTable &table;
  std::vector<int> value; ///< the values of the row's other variables
  Flags support;
};

bool hasInfinity(const CostTable &table) {
  return std::any_of(table.time.begin(), table.time.end(),
                     [](double time) { return std::isinf(time); });
}

/// Joining this number of table entries takes as long as one further search for
/// an order. Searching for a better order thus takes no longer than a few
/// eliminations.
constexpr double kWorkPerRepetition = 300e3;
constexpr double kMostRepetitions = 16.0;

/// A variable with two values and at least this number of neighbours is
/// eliminated last by one of the orders. Until then, it doubles tables, but it
/// does not affect the order of the other variables.
constexpr std::size_t kManyNeighbours = 8;

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
    const std::vector<int> &clique = adjacent[variable];
    for (std::size_t i = 0; i < clique.size(); ++i)
      for (std::size_t j = i + 1; j < clique.size(); ++j)
        if (!isLinked(clique[i], clique[j]))
          weight +=
              static_cast<double>(domains[clique[i]]) * domains[clique[j]];
    return weight;
  }

  void eliminate(int variable) {
    present[variable] = 0;
    std::vector<int> clique = std::move(adjacent[variable]);
    adjacent[variable].clear();
    for (int a : clique) {
      adjacent[a].erase(
          std::find(adjacent[a].begin(), adjacent[a].end(), variable));
      for (int b : clique)
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

/// Returns the order that always eliminates the variable of least
/// `score(graph, variable)`. The work is infinity if it exceeds `workLimit`.
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
    std::vector<int> clique = graph.neighbours(best);
    result.order.push_back(best);
    result.work += size;
    graph.eliminate(best);
    for (int a : clique) {
      if (graph.has(a))
        scores[a] = score(graph, a);
      if (scoreReachesFar)
        for (int b : graph.neighbours(a))
          if (graph.has(b))
            scores[b] = score(graph, b);
    }
  }
  result.work = kInfinity;
  return result;
}

double workOf(Graph graph, const std::vector<int> &order) {
  double work = 0.0;
  for (int variable : order) {
    work += graph.tableSize(variable);
    graph.eliminate(variable);
  }
  return work;
}

// Returns the order of least work among greedy orders of all variables.
EliminationOrder leastGreedy(const std::vector<int> &domains,
                             const std::vector<std::vector<int>> &scopes,
                             const std::vector<int> &keep) {
  Graph graph(domains, scopes, keep);
  auto byTable = [](const Graph &g, int v) { return g.tableSize(v); };
  EliminationOrder best =
      greedy(graph, domains.size(), false, kInfinity, byTable);
  double repetitions =
      std::min(best.work / kWorkPerRepetition, kMostRepetitions);

  auto keepBetter = [&best](EliminationOrder candidate) {
    if (candidate.work < best.work)
      best = std::move(candidate);
  };
  auto byFill = [](const Graph &g, int v) { return g.fill(v); };
  keepBetter(greedy(graph, domains.size(), true, best.work, byFill));

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
    keepBetter(greedy(graph, domains.size(), false, best.work, byTableRoughly));
    keepBetter(greedy(graph, domains.size(), true, best.work, byFillRoughly));
  }
  return best;
}

} // namespace

LiveValues liveValues(const Problem &problem) {
  Flags live;
  live.reserve(problem.domains.size());
  for (int domain : problem.domains)
    live.emplace_back(static_cast<std::size_t>(domain), 1);

  bool illegal = false;
  std::vector<Reviser> revisers;
  for (const CostTable &table : problem.tables)
    if (hasInfinity(table)) {
      if (table.scope.empty())
        illegal = true;
      else
        revisers.emplace_back(table, problem.domains);
    }

  // A table is revised again once one of its variables has lost a value.
  std::vector<int> lostAt(live.size(), 0);
  std::vector<int> revisedAt(revisers.size(), -1);
  int now = 0;
  for (bool changed = true; changed && !illegal;) {
    changed = false;
    for (std::size_t i = 0; i < revisers.size(); ++i) {
      const std::vector<int> &scope = revisers[i].scope();
      if (std::none_of(scope.begin(), scope.end(), [&](int variable) {
            return lostAt[variable] > revisedAt[i];
          }))
        continue;
      revisedAt[i] = ++now;
      if (revisers[i].revise(live)) {
        changed = true;
        ++now;
        for (int variable : scope)
          lostAt[variable] = now;
      }
    }
  }

  LiveValues values(live.size());
  for (std::size_t v = 0; v < live.size(); ++v)
    for (std::size_t a = 0; a < live[v].size(); ++a)
      if (live[v][a] != 0 && !illegal)
        values[v].push_back(static_cast<int>(a));
  return values;
}

EliminationOrder planElimination(const std::vector<int> &domains,
                                 const std::vector<std::vector<int>> &scopes,
                                 const std::vector<int> &keep) {
  EliminationOrder best = leastGreedy(domains, scopes, keep);
  const Graph graph(domains, scopes, keep);
  std::vector<int> late;
  for (int v = 0; v < static_cast<int>(domains.size()); ++v)
    if (graph.has(v) && domains[v] == 2 &&
        graph.neighbours(v).size() >= kManyNeighbours)
      late.push_back(v);
  if (late.empty())
    return best;

  std::vector<int> absent = keep;
  absent.insert(absent.end(), late.begin(), late.end());
  std::vector<std::vector<int>> others = scopes;
  for (std::vector<int> &scope : others)
    std::erase_if(scope, [&](int variable) {
      return std::ranges::find(late, variable) != late.end();
    });
  EliminationOrder order = leastGreedy(domains, others, absent);
  order.order.insert(order.order.end(), late.begin(), late.end());
  order.work = workOf(graph, order.order);
  return order.work < best.work ? order : best;
}

} // namespace mtplan::planner
