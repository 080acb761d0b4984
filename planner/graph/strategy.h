//===- strategy.h - An assignment of mesh axes to factors -------*- C++ -*-===//
//
// Enumerates the legal strategies of an operator and the layouts that each
// strategy implies. A strategy assigns each mesh axis to a factor, to nothing
// (every rank repeats the work), or to a linear group (operands and result are
// partial).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_STRATEGY_H
#define MTPLAN_PLANNER_GRAPH_STRATEGY_H

#include <string>
#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// A strategy assigns to every mesh axis a factor index >= 0, kReplicated, or
/// kLinear - g for the linear group g.
inline constexpr int kLinear = -2;
struct Strategy {
  std::vector<int> axes;
  auto operator<=>(const Strategy &) const = default;
};

struct AxisRule {
  std::vector<Split> splits;
  bool allowReplicated = true; ///< whether the axis may repeat work
  bool has(Split split) const;
};

/// Returns all legal strategies. On each axis, replication comes first, then
/// the factors, then the linear groups. The order breaks ties between equal
/// costs. A factor is legal on an axis if the axis's rule has the factor's
/// split, the factor is divisible, and the number of ranks that split the
/// factor divides its size. If AxisRule::allowReplicated is false, the operator
/// is replicated over the axis only if no factor is legal on that axis.
std::vector<Strategy> strategiesOf(const Op &op, const Mesh &mesh,
                                   const std::vector<AxisRule> &rules);

Layout operandLayout(const Op &op, const Strategy &strategy, int index);
Layout resultLayout(const Op &op, const Strategy &strategy, int index);

/// Returns the strategy as text: "column", "row", "batch + column",
/// "replicated", "partial", ... Tensor axes with equal splits share one word;
/// different splits are joined, as in "column + replicated".
std::string describe(const Op &op, const Strategy &strategy, const Mesh &mesh);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_STRATEGY_H
