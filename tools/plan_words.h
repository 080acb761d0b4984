//===- plan_words.h - What a saved plan says of an operator -----*- C++ -*-===//
//
// Strategies and layouts as short texts, both ways: "dp=b tp=o" gives the axis
// dp to the factor b and tp to o, "tp=partial" to the operator's first linear
// group ("tp=partial.1": the second); layouts are written as reports do,
// "[dp, -, tp] partial={cp:sum}".
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PLAN_WORDS_H
#define MTPLAN_TOOLS_PLAN_WORDS_H

#include <optional>
#include <string>

#include "planner/graph/strategy.h"

namespace mtplan::tools {

std::string strategyText(const planner::Op &op,
                         const planner::Strategy &strategy,
                         const planner::Mesh &mesh);

/// Nothing, with what is wrong, if the operator has no such strategy or `rules`
/// do not allow it.
std::optional<planner::Strategy>
readStrategy(const std::string &text, const planner::Op &op,
             const planner::Mesh &mesh,
             const std::vector<planner::AxisRule> &rules, std::string &error);

/// The opposite of planner::toString. Nothing, with what is wrong, if it is no
/// layout of a tensor of that shape.
std::optional<planner::Layout>
readLayout(const std::string &text, const std::vector<std::int64_t> &shape,
           const planner::Mesh &mesh, std::string &error);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PLAN_WORDS_H
