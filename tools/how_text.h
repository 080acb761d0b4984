//===- how_text.h - How devices are shared out, in words --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_HOW_TEXT_H
#define MTPLAN_TOOLS_HOW_TEXT_H

#include <string>
#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/search/parallelism.h"

namespace mtplan::tools {

/// "dp 2 x tp 8", "dp 2 x tp 8 x pp 4"; axes of one rank but dp and tp are left
/// out.
std::string meshText(const planner::Parallelism &how);

/// "micro-batch 4 x 64": samples at once, and how often.
std::string batchText(const planner::Parallelism &how);

/// "interleaved x2, ZeRO 1, full recompute"; what is not the default.
std::string choicesText(const planner::Parallelism &how);

/// "row,head", as --splits takes them.
std::string splitsText(const std::vector<planner::Split> &splits);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_HOW_TEXT_H
