//===- parallelism_text.h - A configuration as text --*- C++

#ifndef MTPLAN_TOOLS_DRIVER_PARALLELISM_TEXT_H
#define MTPLAN_TOOLS_DRIVER_PARALLELISM_TEXT_H

#include <string>
#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/search/search_result.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::tools {

/// "dp 2 x tp 8", "dp 2 x tp 8 x pp 4"; pp, cp and ep of one rank are left out.
std::string meshText(const planner::Parallelism &config);

/// "micro-batch 4 x 64": samples per micro-batch, and micro-batches per step.
std::string batchText(const planner::Parallelism &config);

/// "interleaved x2, ZeRO 1, full recompute": the choices that are not defaults.
std::string choicesText(const planner::Parallelism &config);

/// "dp 2 x tp 8, micro-batch 4, ZeRO 1, 28.1 of 80 GiB, 2.05 s a step".
std::string candidateText(const planner::PlannedCandidate &candidate);

/// "row,head": the form that --splits takes.
std::string splitsText(const std::vector<planner::Split> &splits);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_PARALLELISM_TEXT_H
