//===- conversions.h - The layout changes of one value ----------*- C++ -*-===//
//
// Prices the conversions of a value from the layout in which it is produced to
// the layouts in which it is read. Readers with equal layouts share one
// conversion. A table over the producer and all readers is exact, but its size
// grows exponentially with the number of readers. The alternative is a variable
// over the *set* of layouts in which the value is read. One table prices each
// set, and one table per reader forbids the sets without the reader's layout.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_CONVERSIONS_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_CONVERSIONS_H

#include <map>
#include <utility>
#include <vector>

#include "planner/search/segment/reshard_prices.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Describes a producer or reader of a tensor by its variable. For each value
/// of the variable, `layouts` holds the tensor's layout as an index into the
/// tensor's domain.
struct Port {
  int variable = -1;
  std::vector<int> layouts;
  bool operator==(const Port &) const = default;
};

/// Describes the conversions of a tensor in one phase.
struct Conversions {
  int tensor = 0;
  Phase phase = Phase::forward;
  Port maker;
  std::vector<Port> readers;
  /// Holds the variable that selects one of `sets`, the layouts in which the
  /// tensor is read. If -1, the readers' variables determine these layouts.
  int setVariable = -1;
  std::vector<LayoutSet> sets;
};

/// Returns whether a direct table is so large that a variable over sets is
/// solved faster. The limits were measured.
bool hasLargeTable(const Conversions &conversions);

/// Sets Conversions::sets to all sets of layouts that the readers can require
/// together.
void chooseSets(Conversions &conversions);

/// Returns the table that forbids sets without the reader's layout.
CostTable membershipTable(const Conversions &conversions, const Port &reader);

/// Returns the table that forbids saving a value in a layout other than its
/// producer's. A value whose producer leaves it partial may be saved in
/// any layout.
CostTable savedAsProduced(const Port &maker, const Port &saved,
                          const LayoutDomain &domain);

/// Makes the tables of one segment's conversions. Most tensors of a layer have
/// equal domains and readers, so equal tables are computed once.
class ConversionTables {
public:
  /// Returns the prices over the producer's and all readers' variables.
  /// \param number  identifies the domain; tensors with equal domains may have
  /// the same number
  CostTable directTable(const Conversions &conversions,
                        const LayoutDomain &domain, int number);
  /// Returns the prices over the producer's variable and `setVariable`.
  CostTable setTable(const Conversions &conversions, const LayoutDomain &domain,
                     int number);

private:
  ConversionTrees &treesOf(const LayoutDomain &domain, Phase phase, int number);

  std::map<std::pair<int, Phase>, ConversionTrees> trees;
  /// The key has the domain's number, the phase, the producer's layouts and,
  /// for each variable, the layouts that its values require.
  std::map<std::vector<LayoutSet>, std::vector<double>> known;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_CONVERSIONS_H
