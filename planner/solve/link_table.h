//===- link_table.h - A link, seen from its boundary ------------*- C++ -*-===//
//
// Eliminates a link's inside and presents the rest as a matrix per combination
// of its shared values: cost[in state][out state]. A state numbers the
// combinations of the boundary variables' values, the last one fastest.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_LINK_TABLE_H
#define MTPLAN_PLANNER_SOLVE_LINK_TABLE_H

#include <cstddef>
#include <vector>

#include "planner/solve/chain.h"
#include "planner/solve/elimination.h"

namespace mtplan::planner {

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

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_LINK_TABLE_H
