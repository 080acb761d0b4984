//===- op_graph_dot.h - A planned step as a drawing -------------*- C++ -*-===//
//
// Prints a planned step's operators as a Graphviz graph.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_OP_GRAPH_DOT_H
#define MTPLAN_PLANNER_GRAPH_OP_GRAPH_DOT_H

#include <string>
#include <vector>

#include "planner/graph/strategy.h"

namespace mtplan::planner {

/// Describes a drawn group of repeats of `segment` that have equal layouts.
struct DrawnSegment {
  int segment = 0; ///< index into ModelGraph::segments
  int first = 0, copies = 1;
  std::vector<Strategy> strategies; ///< one per op; empty: not planned
};

/// Returns Graphviz text: a node per operator, coloured by its strategy, and an
/// edge per tensor from its producer to each reader, labelled with the shape.
/// Backward operators are dashed.
std::string dotOf(const ModelGraph &graph,
                  const std::vector<DrawnSegment> &segments, const Mesh &mesh);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_DOT_H
