//===- op_graph_json.h - A planning problem as a file -----------*- C++ -*-===//
//
// Reads and writes graph files. A graph file holds a planning problem and needs
// no compiler, so that it alone reproduces a wrong plan. The members are those
// of op_graph.h, with keys in snake_case and with factors and tensors by index.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_OP_GRAPH_JSON_H
#define MTPLAN_PLANNER_GRAPH_OP_GRAPH_JSON_H

#include <stdexcept>
#include <string>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// Reports an invalid graph file. what() lists every violation, one per line,
/// each starting with the JSON pointer of the offending value (or with
/// "line:column" if the text is not JSON).
class GraphError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the file's text: one line per tensor, factor and use. Equal graphs
/// have equal text.
std::string formatModelGraph(const ModelGraph &graph);

/// Reads a graph file's text. The result passes check().
/// \throws GraphError with every violation
ModelGraph parseModelGraph(const std::string &text);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_JSON_H
