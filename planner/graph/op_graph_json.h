//===- op_graph_json.h - A planning problem as a file -----------*- C++ -*-===//
//
// A graph file holds the planning problem without a compiler, so that the file
// alone reproduces a wrong plan. The form is op_graph.h's, member by member,
// with keys in snake_case, factors and tensors by index.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_OP_GRAPH_JSON_H
#define MTPLAN_PLANNER_GRAPH_OP_GRAPH_JSON_H

#include <stdexcept>
#include <string>

#include "planner/graph/op_graph.h"

namespace mtplan::planner {

/// A graph file that cannot be used. what() is every violation, one a line,
/// each starting with the JSON pointer of the offending value (with
/// "line:column" where the text is not JSON).
class GraphError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the file of `graph`: one line per tensor, factor and use; the same
/// graph gives the same bytes.
std::string formatModelGraph(const ModelGraph &graph);

/// Reads a file's text. The result passes check().
/// \throws GraphError
ModelGraph parseModelGraph(const std::string &text);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_JSON_H
