//===- chain_tables.h - All links' tables at one objective ------*- C++ -*-===//
//
// Runs every link's elimination at one objective and finds the best path over
// the boundaries, for each combination of the shared values.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H

#include <cstddef>
#include <vector>

#include "planner/solve/chain.h"
#include "planner/solve/chain_path.h"
#include "planner/solve/link_table.h"

namespace mtplan::planner {

/// Merges consecutive equal repeats into runs. Repeats that keep their boundary
/// state may change places within their stretch, so that equal ones are grouped
/// in order of first appearance.
std::vector<Run> runsOf(const std::vector<Link> &links,
                        const std::vector<int> &linkOf,
                        std::vector<Assignment> repeats);

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
