//===- chain_tables.h - All links' tables at one objective ------*- C++ -*-===//
//
// For each combination of its shared values, a link has a matrix cost[in state]
// [out state]. A state is a combination of the boundary variables' values,
// numbered with the last variable fastest. The path has one stage per repeat of
// each link, and one node per state of the boundary between two repeats.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H

#include <cstddef>
#include <vector>

#include "planner/solve/elimination.h"

namespace mtplan::planner {

/// Describes one repeat of a link as one step of the shortest path. Repeats of
/// one link point to the same matrix.
struct Stage {
  int link = 0;
  const double *cost = nullptr; ///< [in state][out state]
  std::size_t in = 1, out = 1;  ///< numbers of states
};

/// Holds the length of the shortest path that ends or begins at each state, as
/// [boundary][state]. There are stages + 1 boundaries.
using Distances = std::vector<std::vector<double>>;

void distancesFromStart(const std::vector<Stage> &stages, Distances &result);
void distancesToEnd(const std::vector<Stage> &stages, Distances &result);

/// Returns the states of a shortest path, one per boundary; empty if all paths
/// are infinite. Among paths that are equal up to rounding, a path that stays
/// in one state is preferred, and then the path through the lowest state.
std::vector<std::size_t> shortestPath(const std::vector<Stage> &stages,
                                      const Distances &fromStart);

/// Returns the variables that an elimination of the link keeps: the shared and
/// the boundary variables, each once.
std::vector<int> keptVariables(const Link &link);

/// Holds a link's cost for each shared combination, in state and out state.
class LinkTable {
public:
  explicit LinkTable(const Link &link);

  /// Returns false if no assignment is legal; run() must not be called then.
  bool prepare(const Problem &problem);
  void run(const Problem &problem, Objective objective);
  /// Returns a cheapest assignment of the last run; empty if no assignment is
  /// legal.
  Assignment decode(std::size_t shared, std::size_t in, std::size_t out) const;

  /// Returns the last run's costs, [shared][in][out].
  const std::vector<double> &costs() const { return dense; }
  std::size_t position(std::size_t shared, std::size_t in,
                       std::size_t out) const {
    return (shared * inCount + in) * outCount + out;
  }
  /// Returns, per position, the entry of elimination().table(), or -1 if a
  /// value is not live or the states give one variable two values.
  const std::vector<int> &entries() const { return entryAt; }
  /// Returns the values of the variables in elimination().program().keep; empty
  /// if the states give one variable two values.
  std::vector<int> keptValues(std::size_t shared, std::size_t in,
                              std::size_t out) const;

  std::size_t inStates() const { return inCount; }
  std::size_t outStates() const { return outCount; }
  const std::vector<int> &sharedIds() const { return ids; } ///< ascending
  const std::vector<int> &sharedDomains() const { return idDomains; }
  const Elimination &elimination() const { return inside; }

private:
  void mapEntries();
  /// Sets `values` to each variable's value, or to -1 if the variable has none.
  /// Returns false if a variable would have two values.
  bool fixValues(std::size_t shared, std::size_t in, std::size_t out,
                 std::vector<int> &values) const;

  std::vector<int> domains, inVariables, outVariables;
  std::vector<std::pair<int, int>> sharedVariables;
  std::vector<int> ids, idDomains;
  std::size_t inCount = 1, outCount = 1, sharedCount = 1;
  Elimination inside;
  int mappedGeneration = 0;
  std::vector<int> entryAt;
  std::vector<double> dense;
};

/// Returns the repeats as runs of equal assignments. Consecutive repeats that
/// do not change the boundary state are first reordered, so that equal repeats
/// are adjacent, in order of first appearance.
std::vector<Run> runsOf(const std::vector<Link> &links,
                        const std::vector<int> &linkOf,
                        std::vector<Assignment> repeats);

class ChainTables {
public:
  explicit ChainTables(const ChainProblem &shape);

  /// Returns false if some link has no legal assignment. Repeats may differ
  /// from the shape's.
  bool prepare(const ChainProblem &chain);

  /// Returns the least objective of any solution; +infinity if none is legal.
  double run(const ChainProblem &chain, Objective objective);

  /// Returns a solution with the last run's least objective.
  std::vector<Run> decode(const ChainProblem &chain) const;

  /// Returns, per repeat, the index of its link.
  const std::vector<int> &linkOf() const { return links; }
  const LinkTable &table(int link) const { return tables[link]; }
  std::size_t sharedCount() const { return combinations; }
  /// Returns the index of the chain's combination in the tables of `link`,
  /// which depend only on the shared variables of the link.
  std::size_t localShared(int link, std::size_t combination) const {
    return local[link][combination];
  }
  /// Returns a copy of the last run's costs per link, for `stages`.
  std::vector<std::vector<double>> costs() const;
  /// Returns the path's stages, with the last run's costs if `costs` is null.
  std::vector<Stage>
  stages(std::size_t combination,
         const std::vector<std::vector<double>> *costs = nullptr) const;

private:
  std::vector<LinkTable> tables; ///< per link
  std::vector<int> links;        ///< per repeat: index of its link
  std::size_t combinations = 1;
  std::vector<std::vector<std::size_t>> local; ///< [link][combination]
  Distances distances;
  std::size_t bestCombination = 0;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H
