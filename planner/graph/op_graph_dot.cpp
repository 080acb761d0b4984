//===- op_graph_dot.cpp - A planned step as a drawing ---------------------===//

#include "planner/graph/op_graph_dot.h"

#include <sstream>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

struct Node {
  std::string label, colour;
  bool backward = false;
};
struct Edge {
  std::string label;
};
using Drawing = boost::adjacency_list<boost::vecS, boost::vecS,
                                      boost::bidirectionalS, Node, Edge>;
using Vertex = Drawing::vertex_descriptor;

constexpr Vertex kNone = static_cast<Vertex>(-1);

const char *colourOf(const std::string &strategy) {
  struct Entry {
    const char *word, *colour;
  };
  static constexpr Entry kColours[] = {
      {"column", "lightblue"},  {"row", "lightsalmon"},
      {"head", "palegreen"},    {"vocab", "khaki"},
      {"sequence", "plum"},     {"partial", "lightgray"},
      {"feature", "lightcyan"}, {"hidden", "lightpink"}};
  for (const Entry &entry : kColours)
    if (strategy.find(entry.word) != strategy.npos)
      return entry.colour;
  return "white";
}

std::string shapeOf(const Tensor &tensor) {
  std::string text;
  for (std::int64_t size : tensor.shape) {
    if (!text.empty())
      text += 'x';
    text += std::to_string(size);
  }
  return text.empty() ? "scalar" : text;
}

class Painter {
public:
  Painter(const ModelGraph &m, const Mesh &on) : graph(m), mesh(on) {}

  void add(const DrawnSegment &drawn) {
    const SegmentGraph &segment = graph.segments[at(drawn.segment)];
    std::vector<Vertex> makers(segment.tensors.size(), kNone);
    std::vector<Vertex> nodes = addOps(drawn, segment, makers);
    for (std::size_t i = 0; i < segment.carriedIn.size(); ++i)
      if (i < carried.size())
        makers[at(segment.carriedIn[i])] = carried[i];
    // The next segment, which is not drawn yet, makes the incoming gradients.
    for (std::size_t i = 0; i < segment.gradientIn.size(); ++i)
      for (std::size_t o = 0; o < segment.ops.size(); ++o)
        for (const Use &use : segment.ops[o].operands)
          if (use.tensor == segment.gradientIn[i])
            nextAwaiting.push_back({i, nodes[o], use.tensor, drawn.segment});
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      for (const Use &use : segment.ops[o].operands)
        connect(makers[at(use.tensor)], nodes[o],
                segment.tensors[at(use.tensor)]);
    for (const Awaiting &reader : awaiting)
      if (reader.position < segment.gradientOut.size())
        connect(makers[at(segment.gradientOut[reader.position])], reader.node,
                graph.segments[at(reader.segment)].tensors[at(reader.tensor)]);
    awaiting = std::exchange(nextAwaiting, {});
    carried.clear();
    for (int tensor : segment.carriedOut)
      carried.push_back(makers[at(tensor)]);
  }

  std::string print() const {
    std::ostringstream out;
    auto quote = [](const std::string &text) {
      std::string quoted = "\"";
      for (char c : text)
        quoted += c == '"' ? "\\\"" : std::string(1, c);
      return quoted + '"';
    };
    boost::write_graphviz(
        out, drawing,
        [&](std::ostream &to, Vertex v) {
          const Node &node = drawing[v];
          to << "[label=" << quote(node.label)
             << ", fillcolor=" << quote(node.colour) << ", style="
             << (node.backward ? "\"filled,dashed\"" : "\"filled\"") << ']';
        },
        [&](std::ostream &to, Drawing::edge_descriptor e) {
          to << "[label=" << quote(drawing[e].label) << ']';
        },
        [](std::ostream &to) { to << "node [shape=box];\n"; });
    return out.str();
  }

private:
  /// Describes an operator that reads a gradient from the next segment.
  struct Awaiting {
    std::size_t position;
    Vertex node;
    int tensor, segment;
  };

  std::vector<Vertex> addOps(const DrawnSegment &drawn,
                             const SegmentGraph &segment,
                             std::vector<Vertex> &makers) {
    std::vector<Vertex> nodes;
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const Op &op = segment.ops[o];
      std::string strategy;
      if (!drawn.strategies.empty())
        strategy = describe(op, drawn.strategies[o], mesh);
      std::string label = op.name;
      if (drawn.copies > 1)
        label += " x" + std::to_string(drawn.copies);
      if (!strategy.empty())
        label += "\\n" + strategy;
      nodes.push_back(boost::add_vertex(
          Node{label, colourOf(strategy), op.phase == Phase::backward},
          drawing));
      for (const Use &use : op.results)
        makers[at(use.tensor)] = nodes.back();
    }
    return nodes;
  }

  void connect(Vertex from, Vertex to, const Tensor &tensor) {
    if (from != kNone)
      boost::add_edge(from, to, Edge{shapeOf(tensor)}, drawing);
  }

  const ModelGraph &graph;
  const Mesh &mesh;
  Drawing drawing;
  /// Lists the producers of the values that the segment before carries out.
  std::vector<Vertex> carried;
  std::vector<Awaiting> awaiting, nextAwaiting;
};

} // namespace

std::string dotOf(const ModelGraph &graph,
                  const std::vector<DrawnSegment> &segments, const Mesh &mesh) {
  Painter painter(graph, mesh);
  for (const DrawnSegment &segment : segments)
    painter.add(segment);
  return painter.print();
}

} // namespace mtplan::planner
