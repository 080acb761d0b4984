//===- strategy.h - An assignment of mesh axes to factors -------*- C++ -*-===//
//
// The legal strategies of an operator and the layouts that each of them
// implies. A strategy gives a mesh axis to a factor, to nothing (every rank
// repeats the work), or to a linear group (partial operands in, partial result
// out).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_STRATEGY_H
#define MTPLAN_PLANNER_GRAPH_STRATEGY_H

#include <string>
#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// The choice of every mesh axis: a factor index >= 0, kReplicated, or kLinear
/// - g for the linear group g.
inline constexpr int kLinear = -2;
struct Strategy {
  std::vector<int> axes;
  auto operator<=>(const Strategy &) const = default;
};

/// The splits that an axis may be used for.
struct AxisRule {
  std::vector<Split> splits;
  bool allowReplicated = true; ///< whether the axis may repeat work
  bool has(Split split) const;
};

/// Returns all legal strategies: the replicated one first, then by factor,
/// linear groups last; ties are broken by this order. A factor is legal on an
/// axis if its split is in the rule, it is divisible, and its size divides by
/// the axes given to it. If replication is not allowed, an axis is replicated
/// only if no factor fits.
std::vector<Strategy> strategiesOf(const Op &op, const Mesh &mesh,
                                   const std::vector<AxisRule> &rules);

/// Returns the layout in which the operator reads operand `index` or makes
/// result `index`.
Layout operandLayout(const Op &op, const Strategy &strategy, int index);
Layout resultLayout(const Op &op, const Strategy &strategy, int index);

/// Returns the strategy in the field's words: "column", "row", "head", "vocab",
/// "batch + column", "replicated", "partial".
std::string describe(const Op &op, const Strategy &strategy, const Mesh &mesh);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_STRATEGY_H
