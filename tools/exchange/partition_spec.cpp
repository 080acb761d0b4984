//===- partition_spec.cpp - P('dp', None, ('tp', 'cp')) -------------------===//

#include <algorithm>

#include <fmt/format.h>

#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/text_scanner.h"

namespace mtplan::tools {

using planner::Layout;
using planner::Mesh;

namespace {

std::string nameOf(const Mesh &mesh, int axis) {
  return quotedName(mesh.axes[static_cast<std::size_t>(axis)].name, '\'');
}

// Reads None, 'axis', or a tuple or list of axes.
std::vector<int> readEntry(TextScanner &scanner, AxisReader &axes) {
  std::vector<int> entry;
  if (scanner.nextIsQuote()) {
    entry.push_back(axes.next());
  } else if (scanner.take("(") || scanner.take("[")) {
    while (scanner.nextIsQuote()) {
      entry.push_back(axes.next());
      if (!scanner.take(","))
        break;
    }
    if (!scanner.take(")"))
      scanner.expect("]");
  } else if (std::string word = scanner.word();
             word.ends_with("UNCONSTRAINED")) {
    scanner.fail("UNCONSTRAINED is no layout; name the axes, or None");
  } else if (word != "None") {
    scanner.fail("expected None, an axis or a tuple of axes");
  }
  return entry;
}

// Reads unreduced={'x', 'y'}, with or without frozenset.
std::vector<int> readUnreduced(TextScanner &scanner, AxisReader &axes) {
  std::vector<int> partial;
  scanner.expect("=");
  bool wrapped = scanner.take("frozenset(") || scanner.take("set(");
  if (scanner.take("{") || scanner.take("[")) {
    while (scanner.nextIsQuote()) {
      partial.push_back(axes.next());
      if (!scanner.take(","))
        break;
    }
    if (!scanner.take("}"))
      scanner.expect("]");
  } else if (!wrapped) {
    scanner.fail("expected a set of axes");
  }
  if (wrapped)
    scanner.expect(")");
  std::ranges::sort(partial);
  return partial;
}

} // namespace

std::string writePartitionSpec(const Layout &layout, const Mesh &mesh,
                               Errors &errors) {
  if (!layout.partial.empty() && layout.reduction != planner::Reduction::sum) {
    errors.emplace_back("PartitionSpec has no word for a partial maximum");
    return {};
  }
  std::string text = "P(";
  for (std::size_t d = 0; d < layout.dims.size(); ++d) {
    const std::vector<int> &axes = layout.dims[d];
    text += d > 0 ? ", " : "";
    if (axes.empty())
      text += "None";
    else if (axes.size() == 1)
      text += nameOf(mesh, axes[0]);
    else
      for (std::size_t i = 0; i < axes.size(); ++i)
        text += (i == 0 ? "(" : ", ") + nameOf(mesh, axes[i]) +
                (i + 1 == axes.size() ? ")" : "");
  }
  if (!layout.partial.empty()) {
    text += layout.dims.empty() ? "unreduced={" : ", unreduced={";
    for (std::size_t i = 0; i < layout.partial.size(); ++i)
      text += (i == 0 ? "" : ", ") + nameOf(mesh, layout.partial[i]);
    text += '}';
  }
  return text + ')';
}

std::optional<Layout> readPartitionSpec(const std::string &text,
                                        std::size_t rank, const Mesh &mesh,
                                        Errors &errors) {
  TextScanner scanner(text);
  AxisReader axes(scanner, mesh);
  Layout layout;
  std::string name = scanner.word();
  if (name != "P" && name != "PartitionSpec" &&
      !name.ends_with(".PartitionSpec") && !name.ends_with(".P"))
    scanner.fail("expected P(...) or PartitionSpec(...)");
  scanner.expect("(");
  bool more = !scanner.take(")");
  while (more && !scanner.failed()) {
    if (scanner.take("unreduced"))
      layout.partial = readUnreduced(scanner, axes);
    else
      layout.dims.push_back(readEntry(scanner, axes));
    if (layout.dims.size() > rank)
      scanner.fail(
          fmt::format("more entries than the tensor's {} dimensions", rank));
    bool comma = scanner.take(",");
    more = !scanner.take(")");
    if (more && !comma)
      scanner.fail("expected \",\" or \")\"");
  }
  scanner.expectEnd();
  if (scanner.failed()) {
    errors.push_back(scanner.error());
    return std::nullopt;
  }
  layout.dims.resize(rank);
  return layout;
}

} // namespace mtplan::tools
