//===- factor_graph.cpp - Pricing and checking an assignment ----*- C++ -*-===//
//
// Deliberately plain: the fast solvers are tested against it.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/factor_graph.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mtplan::planner {

Cost costOf(const Problem &problem, const Assignment &assignment) {
  Cost cost;
  for (const CostTable &table : problem.tables) {
    std::size_t entry = 0;
    for (int variable : table.scope)
      entry = entry * static_cast<std::size_t>(problem.domains[variable]) +
              static_cast<std::size_t>(assignment[variable]);
    cost.time += table.time[entry];
    if (!table.memory.empty())
      cost.memory += table.memory[entry];
  }
  return cost;
}

namespace {

/// Returns the number of entries that a table over `scope` must have; 0 if its
/// scope is unsound.
std::size_t expectedSize(const Problem &problem, const std::vector<int> &scope,
                         const std::string &where,
                         std::vector<std::string> &errors) {
  std::size_t size = 1;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    int variable = scope[i];
    if (variable < 0 || variable >= static_cast<int>(problem.domains.size())) {
      errors.push_back(where + ": variable " + std::to_string(variable) +
                       " of its scope does not exist");
      return 0;
    }
    if (std::count(scope.begin(), scope.end(), variable) > 1) {
      errors.push_back(where + ": variable " + std::to_string(variable) +
                       " occurs twice in its scope");
      return 0;
    }
    size *= static_cast<std::size_t>(std::max(problem.domains[variable], 0));
  }
  return size;
}

} // namespace

std::vector<std::string> check(const Problem &problem) {
  std::vector<std::string> errors;
  for (std::size_t i = 0; i < problem.domains.size(); ++i)
    if (problem.domains[i] < 1)
      errors.push_back("variable " + std::to_string(i) + ": domain is " +
                       std::to_string(problem.domains[i]) +
                       ", must be at least 1");
  for (std::size_t i = 0; i < problem.tables.size(); ++i) {
    const CostTable &table = problem.tables[i];
    std::string where = "table " + std::to_string(i);
    std::size_t size = expectedSize(problem, table.scope, where, errors);
    if (size == 0)
      continue;
    if (table.time.size() != size)
      errors.push_back(where + ": has " + std::to_string(table.time.size()) +
                       " times, its scope needs " + std::to_string(size));
    if (!table.memory.empty() && table.memory.size() != size)
      errors.push_back(where + ": has " + std::to_string(table.memory.size()) +
                       " memory entries, its scope needs " +
                       std::to_string(size));
    auto badTime = [](double time) {
      return std::isnan(time) || (std::isinf(time) && time < 0);
    };
    if (std::any_of(table.time.begin(), table.time.end(), badTime))
      errors.push_back(where + ": a time is not a number or -infinity");
    if (std::any_of(table.memory.begin(), table.memory.end(),
                    [](double bytes) { return !std::isfinite(bytes); }))
      errors.push_back(where + ": a memory entry is not finite");
  }
  return errors;
}

} // namespace mtplan::planner
