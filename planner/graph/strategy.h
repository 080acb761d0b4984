//===- strategy.h - One operator's assignment of axes to factors -*- C++
//-*-===//
//
// The legal strategies of an operator and the layouts each of them implies.
// A mesh axis is given to a factor, to nothing (every rank repeats the work),
// or to a linear group (partial operands in, partial result out).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_STRATEGY_H
#define MTPLAN_PLANNER_GRAPH_STRATEGY_H

#include <string>
#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Per mesh axis: a factor index >= 0, kWhole, or kLinear - g for group g.
inline constexpr int kLinear = -2;
struct Strategy {
  std::vector<int> axes;
  auto operator<=>(const Strategy &) const = default;
};

/// Which splits an axis may be used for. Index by axis.
struct AxisRule {
  std::vector<Split> splits;
  bool allowWhole = true; ///< may the axis repeat work?
  bool has(Split split) const;
};

/// All legal strategies, whole first, then by factor, linear groups last; the
/// order is what ties are broken by. A factor is legal on an axis if its split
/// is in the rule, it is divisible, and its size divides by the axes given to
/// it. An axis that may not be whole is whole only if no factor takes it.
std::vector<Strategy> strategiesOf(const Op &op, const Mesh &mesh,
                                   const std::vector<AxisRule> &rules);

/// Layout in which the operator reads operand `index` / makes result `index`.
Layout operandLayout(const Op &op, const Strategy &strategy, int index);
Layout resultLayout(const Op &op, const Strategy &strategy, int index);

/// The strategy in the field's words: "column", "row", "head", "vocab",
/// "batch + column", "replicated", "partial".
std::string describe(const Op &op, const Strategy &strategy, const Mesh &mesh);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_STRATEGY_H
