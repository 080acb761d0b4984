//===- chain_tables.h - All links' tables at one objective ------*- C++ -*-===//
//
// Runs every link's elimination at one objective and finds the best path over
// the boundaries, for each combination of the shared values.
//
// Seen from its boundary, a link is a matrix per combination of its shared
// values: cost[in state][out state]. A state numbers the combinations of the
// boundary variables' values, the last one fastest. The path has one stage per
// repeat of each link, and one node per state of the boundary between two
// repeats.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H

#include <cstddef>
#include <vector>

#include "planner/solve/elimination.h"

namespace mtplan::planner {

/// One repeat of a link, for the shortest path. Repeats of one link point to
/// the same matrix.
struct Stage {
  int link = 0;
  const double *cost = nullptr; ///< [in state][out state]
  std::size_t in = 1, out = 1;  ///< numbers of states
};

/// The least cost of reaching each state, per boundary (stages + 1 of them).
using Distances = std::vector<std::vector<double>>;

void distancesFromStart(const std::vector<Stage> &stages, Distances &result);
void distancesToEnd(const std::vector<Stage> &stages, Distances &result);

/// Returns the states of a shortest path, one per boundary; empty if all are
/// infinite. Among equals (to rounding) it stays in one state where it can, and
/// takes the lowest state otherwise.
std::vector<std::size_t> shortestPath(const std::vector<Stage> &stages,
                                      const Distances &fromStart);

/// A link, seen from its boundary.
class LinkTable {
public:
  explicit LinkTable(const Link &link);

  /// Prepares as Elimination::prepare does.
  bool prepare(const Problem &problem);
  void run(const Problem &problem, Objective objective);
  /// Returns a cheapest assignment of the last run; empty if none is legal.
  Assignment decode(std::size_t shared, std::size_t in, std::size_t out) const;

  /// Returns the result of the last run, [shared][in][out].
  const std::vector<double> &costs() const { return dense; }
  std::size_t position(std::size_t shared, std::size_t in,
                       std::size_t out) const {
    return (shared * inCount + in) * outCount + out;
  }
  /// Returns per position the entry of elimination().table(), or -1 where a
  /// value is dead or a variable would need two.
  const std::vector<int> &entries() const { return entryAt; }
  /// Returns the values of elimination().program().keep.
  std::vector<int> keptValues(std::size_t shared, std::size_t in,
                              std::size_t out) const;

  std::size_t inStates() const { return inCount; }
  std::size_t outStates() const { return outCount; }
  const std::vector<int> &sharedIds() const { return ids; } ///< ascending
  const std::vector<int> &sharedDomains() const { return idDomains; }
  const Elimination &elimination() const { return inside; }

private:
  void mapEntries();
  /// Sets per variable its value, or -1; returns false if one would need two.
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

/// Merges consecutive equal repeats into runs. Repeats that keep their boundary
/// state may change places within their stretch, so that equal ones are grouped
/// in order of first appearance.
std::vector<Run> runsOf(const std::vector<Link> &links,
                        const std::vector<int> &linkOf,
                        std::vector<Assignment> repeats);

/// The tables of all links of a chain.
class ChainTables {
public:
  explicit ChainTables(const ChainProblem &shape);

  /// Prepares all links as Elimination::prepare does. Repeats may differ from
  /// the shape's.
  bool prepare(const ChainProblem &chain);

  /// Returns the least objective of any solution; +infinity if none is legal.
  double run(const ChainProblem &chain, Objective objective);

  /// Returns a solution with the last run's least objective.
  std::vector<Run> decode(const ChainProblem &chain) const;

  const std::vector<int> &linkOf() const { return links; } ///< per repeat
  const LinkTable &table(int link) const { return tables[link]; }
  /// Returns the number of combinations of the shared values.
  std::size_t sharedCount() const { return combinations; }
  /// Returns the link's own number for a combination.
  std::size_t localShared(int link, std::size_t combination) const {
    return local[link][combination];
  }
  /// Copies the last run's costs per link, for `stages`.
  std::vector<std::vector<double>> costs() const;
  /// Uses the last run's costs if `costs` is null.
  std::vector<Stage>
  stages(std::size_t combination,
         const std::vector<std::vector<double>> *costs = nullptr) const;

private:
  std::vector<LinkTable> tables; ///< per link
  std::vector<int> links;        ///< per repeat
  std::size_t combinations = 1;
  std::vector<std::vector<std::size_t>> local; ///< [link][combination]
  Distances distances;
  std::size_t bestCombination = 0;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H
