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

/// Consecutive equal copies become one run. Copies that leave the state they
/// found may change places within their stretch: equal ones are brought
/// together, in order of first appearance.
std::vector<Run> runsOf(const std::vector<Link> &links,
                        const std::vector<int> &linkOf,
                        std::vector<Assignment> copies);

class ChainTables {
public:
  explicit ChainTables(const ChainProblem &shape);

  /// As Elimination's, for all links. Repeats may differ from the shape's.
  bool prepare(const ChainProblem &chain);

  /// The least objective of any solution; +infinity if none is legal.
  double run(const ChainProblem &chain, Objective objective);

  /// A solution of the last run's least objective.
  std::vector<Run> decode(const ChainProblem &chain) const;

  const std::vector<int> &linkOf() const { return links; } ///< per copy
  const LinkTable &table(int link) const { return tables[link]; }
  /// Combinations of the shared values.
  std::size_t sharedCount() const { return combinations; }
  /// The link's own number for a combination.
  std::size_t localShared(int link, std::size_t combination) const {
    return local[link][combination];
  }
  /// The last run's costs per link, to be kept for `stages`.
  std::vector<std::vector<double>> costs() const;
  /// With `costs` null: the last run's.
  std::vector<Stage>
  stages(std::size_t combination,
         const std::vector<std::vector<double>> *costs = nullptr) const;

private:
  std::vector<LinkTable> tables; ///< per link
  std::vector<int> links;        ///< per copy
  std::size_t combinations = 1;
  std::vector<std::vector<std::size_t>> local; ///< [link][combination]
  Distances distances;
  std::size_t bestCombination = 0;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_TABLES_H
