//===- strategy_text.h - Strategies and layouts as text ---------*- C++ -*-===//
//
// The texts are written and read: "dp=b tp=o" assigns the axis dp to the factor
// b and tp to o, and "tp=partial" assigns tp to the operator's first linear
// group ("tp=partial.1" to the second). Layouts have the form of reports, "[dp,
// -, tp] partial={cp:sum}".
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_STRATEGY_TEXT_H
#define MTPLAN_TOOLS_DRIVER_STRATEGY_TEXT_H

#include <optional>
#include <string>

#include "planner/graph/strategy.h"

namespace mtplan::tools {

std::string strategyText(const planner::Op &op,
                         const planner::Strategy &strategy,
                         const planner::Mesh &mesh);

/// Returns nothing, with an error, if the operator has no such strategy or
/// `rules` forbid it.
std::optional<planner::Strategy>
readStrategy(const std::string &text, const planner::Op &op,
             const planner::Mesh &mesh,
             const std::vector<planner::AxisRule> &rules, std::string &error);

/// Reads the form that planner::toString writes. Returns nothing, with an
/// error, if the text is no layout of a tensor of that shape.
std::optional<planner::Layout>
readLayout(const std::string &text, const std::vector<std::int64_t> &shape,
           const planner::Mesh &mesh, std::string &error);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_STRATEGY_TEXT_H
