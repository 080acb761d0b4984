//===- live_values.cpp - The values that infinities leave -------*- C++ -*-===//
//
// A table can remove a value only if it has an infinity, and most have none.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/live_values.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace mtplan::planner {
namespace {

using Flags = std::vector<std::vector<char>>;

/// A table with an infinity in it, as rows along its last variable.
class Reviser {
public:
  Reviser(const CostTable &theTable, const std::vector<int> &domains)
      : table(theTable), value(theTable.scope.size(), 0),
        support(theTable.scope.size()) {
    for (std::size_t p = 0; p < support.size(); ++p)
      support[p].resize(static_cast<std::size_t>(domains[table.scope[p]]));
  }

  const std::vector<int> &scope() const { return table.scope; }

  /// Drops the values of its variables that it does not support; returns
  /// whether there were any.
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
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
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
  std::vector<int> value; ///< of the row's other variables
  Flags support;
};

bool hasInfinity(const CostTable &table) {
  return std::any_of(table.time.begin(), table.time.end(),
                     [](double time) { return std::isinf(time); });
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

} // namespace mtplan::planner
