//===- op_graph_check.h - The promises of a sound op graph ------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_GRAPH_OP_GRAPH_CHECK_H
#define MTPLAN_PLANNER_GRAPH_OP_GRAPH_CHECK_H

#include <string>
#include <vector>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Returns every violation of op_graph.h's promises, a sentence each that
/// starts with a JSON pointer; empty if the graph is sound. Complexity: linear
/// in the graph.
std::vector<std::string> check(const ModelGraph &graph);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_CHECK_H
