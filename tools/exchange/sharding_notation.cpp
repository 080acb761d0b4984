//===- sharding_notation.cpp - Layouts in other notations -----------------===//

#include "tools/exchange/sharding_notation.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/integers.h"
#include "tools/exchange/text_scanner.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::at;
using planner::Layout;
using planner::Mesh;
using planner::Reduction;

//===----------------------------------------------------------------------===//
// PartitionSpec
//===----------------------------------------------------------------------===//

namespace {

std::string nameOf(const Mesh &mesh, int axis) {
  return quotedName(mesh.axes[at(axis)].name, '\'');
}

// Reads None, 'axis', or a tuple or list of axes.
std::vector<int> readEntry(TextScanner &scanner, AxisReader &axes) {
  std::vector<int> entry;
  if (scanner.nextIsQuote()) {
    entry.push_back(axes.next());
  } else if (scanner.accept("(") || scanner.accept("[")) {
    entry = axes.list();
    if (!scanner.accept(")"))
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
  bool wrapped = scanner.accept("frozenset(") || scanner.accept("set(");
  if (scanner.accept("{") || scanner.accept("[")) {
    partial = axes.list();
    if (!scanner.accept("}"))
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
  if (!layout.partial.empty() && layout.reduction != Reduction::sum) {
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
  bool more = !scanner.accept(")");
  while (more && !scanner.failed()) {
    if (scanner.accept("unreduced"))
      layout.partial = readUnreduced(scanner, axes);
    else
      layout.dims.push_back(readEntry(scanner, axes));
    if (layout.dims.size() > rank)
      scanner.fail(
          fmt::format("more entries than the tensor's {} dimensions", rank));
    bool comma = scanner.accept(",");
    more = !scanner.accept(")");
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

//===----------------------------------------------------------------------===//
// DTensor
//
// DTensor lists one placement per axis, in the order of the mesh. An axis that
// splits a dimension is written as a _StridedShard if, in this dimension, axes
// that are later in the mesh are major to the axis. Otherwise the axis is
// written as a Shard. The split factor of a _StridedShard is the product of the
// sizes of these later axes. The reader inserts the axes from the last to the
// first, each axis after the axes whose sizes give its split factor.
//===----------------------------------------------------------------------===//

namespace {

std::int64_t sizeOf(const Mesh &mesh, int axis) {
  return mesh.axes[at(axis)].size;
}

// Multiplies the sizes of later mesh axes that are major to `axis`.
std::int64_t splitFactor(const std::vector<int> &dim, int axis,
                         const Mesh &mesh) {
  std::int64_t factor = 1;
  for (int major : dim) {
    if (major == axis)
      break;
    if (major > axis)
      factor *= sizeOf(mesh, major);
  }
  return factor;
}

struct Placement {
  int place = planner::kReplicated;
  std::int64_t factor = 1;
  Reduction reduction = Reduction::sum;
};

Placement readPlacement(TextScanner &scanner, std::size_t rank) {
  Placement placement;
  std::string word = scanner.word();
  scanner.expect("(");
  if (word == "Shard" || word == "_StridedShard") {
    scanner.accept("dim=");
    placement.place =
        static_cast<int>(scanner.integer(0, static_cast<int>(rank) - 1));
    if (word == "_StridedShard") {
      scanner.expect(",");
      scanner.accept("split_factor=");
      placement.factor = scanner.integer(1, 1 << 20);
    }
  } else if (word == "Partial") {
    placement.place = planner::kPartial;
    if (scanner.nextIsQuote()) {
      std::string kind = scanner.quoted();
      placement.reduction = kind == "max" ? Reduction::max : Reduction::sum;
      if (!scanner.failed() && kind != "max" && kind != "sum")
        scanner.fail(fmt::format("Partial(\"{}\"): mtplan has sum and max",
                                 kind.substr(0, 60)));
    }
  } else if (word != "Replicate") {
    scanner.fail("expected Shard(d), Replicate() or Partial()");
  }
  scanner.expect(")");
  return placement;
}

// Inserts `axis` into `dim` after the leading axes whose sizes have the product
// `factor`. The axes in `dim` must come later in the mesh. Returns false if no
// leading axes have this product.
bool insertAxis(std::vector<int> &dim, int axis, std::int64_t factor,
                const Mesh &mesh) {
  auto place = dim.begin();
  std::int64_t product = 1;
  while (product < factor && place != dim.end())
    product *= sizeOf(mesh, *place++);
  dim.insert(place, axis);
  return product == factor;
}

} // namespace

std::string writeDTensor(const Layout &layout, const Mesh &mesh) {
  std::string text = "(";
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    int axis = static_cast<int>(i), place = planner::placementOf(layout, axis);
    text += i == 0 ? "" : ", ";
    if (place == planner::kReplicated) {
      text += "Replicate()";
    } else if (place == planner::kPartial) {
      text += layout.reduction == Reduction::sum ? "Partial('sum')"
                                                 : "Partial('max')";
    } else {
      std::int64_t factor = splitFactor(layout.dims[at(place)], axis, mesh);
      text += factor == 1
                  ? fmt::format("Shard(dim={})", place)
                  : fmt::format("_StridedShard(dim={}, split_factor={})", place,
                                factor);
    }
  }
  return text + (mesh.axes.size() == 1 ? ",)" : ")");
}

std::optional<Layout> readDTensor(const std::string &text, std::size_t rank,
                                  const Mesh &mesh, Errors &errors) {
  TextScanner scanner(text);
  std::vector<Placement> placements;
  bool tuple = scanner.accept("(");
  if (!tuple)
    scanner.expect("[");
  const char *close = tuple ? ")" : "]";
  bool more = !scanner.accept(close);
  while (more && !scanner.failed()) {
    placements.push_back(readPlacement(scanner, rank));
    if (placements.size() > mesh.axes.size())
      scanner.fail(fmt::format("more placements than the mesh's {} axes",
                               mesh.axes.size()));
    bool comma = scanner.accept(",");
    more = !scanner.accept(close);
    if (more && !comma)
      scanner.fail(fmt::format("expected \",\" or \"{}\"", close));
  }
  scanner.expectEnd();
  if (!scanner.failed() && placements.size() != mesh.axes.size())
    scanner.fail(fmt::format("{} placements for a mesh of {} axes",
                             placements.size(), mesh.axes.size()));
  Layout layout = Layout::replicated(rank);
  for (std::size_t i = placements.size(); i-- > 0 && !scanner.failed();) {
    const Placement &placement = placements[i];
    int axis = static_cast<int>(i);
    if (placement.place == planner::kPartial) {
      if (!layout.partial.empty() && layout.reduction != placement.reduction)
        scanner.fail("a value cannot be a partial sum and a partial maximum");
      layout.reduction = placement.reduction;
      layout.partial.insert(layout.partial.begin(), axis);
    } else if (placement.place >= 0 &&
               !insertAxis(layout.dims[at(placement.place)], axis,
                           placement.factor, mesh)) {
      scanner.fail(fmt::format("split_factor {} of axis \"{}\" is no product "
                               "of later axes of its dimension",
                               placement.factor, mesh.axes[i].name));
    }
  }
  if (!scanner.failed())
    return layout;
  errors.push_back(scanner.error());
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Mesh-TensorFlow
//===----------------------------------------------------------------------===//

namespace {

std::string trimmed(const std::string &text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

} // namespace

std::string writeMeshTensorflow(const Layout &layout,
                                const std::vector<NamedDim> &dims,
                                const Mesh &mesh, Errors &errors) {
  std::size_t before = errors.size();
  if (!layout.partial.empty())
    errors.emplace_back("Mesh-TensorFlow has no word for partial values");
  std::string rules;
  for (std::size_t d = 0; d < layout.dims.size(); ++d) {
    if (layout.dims[d].size() > 1)
      errors.push_back(fmt::format("Mesh-TensorFlow splits a dimension over "
                                   "one axis, but {} is split over {}",
                                   dims[d].name, layout.dims[d].size()));
    else if (layout.dims[d].size() == 1)
      rules += fmt::format("{}{}:{}", rules.empty() ? "" : ";", dims[d].name,
                           mesh.axes[at(layout.dims[d][0])].name);
  }
  return errors.size() == before ? rules : std::string();
}

std::optional<Layout> readMeshTensorflow(const std::string &rules,
                                         const std::vector<NamedDim> &dims,
                                         const Mesh &mesh, Errors &errors) {
  constexpr std::size_t kMostErrors = 20;
  Errors found;
  Layout layout = Layout::replicated(dims.size());
  std::size_t start = 0;
  while (start <= rules.size() && found.size() < kMostErrors) {
    std::size_t end = std::min(rules.find(';', start), rules.size());
    std::string rule = trimmed(rules.substr(start, end - start));
    start = end + 1;
    if (rule.empty())
      continue;
    std::string shown = rule.substr(0, 60);
    std::size_t colon = rule.find(':');
    if (colon == std::string::npos) {
      found.push_back(
          fmt::format("rule \"{}\": expected dimension:axis", shown));
      continue;
    }
    std::string dim = trimmed(rule.substr(0, colon));
    std::string name = trimmed(rule.substr(colon + 1));
    int axis = mesh.find(name);
    if (axis < 0) {
      found.push_back(
          fmt::format("rule \"{}\": no axis \"{}\"; the mesh has {}", shown,
                      name.substr(0, 60), axisNames(mesh)));
      continue;
    }
    auto named = std::ranges::find(dims, dim, &NamedDim::name);
    if (named == dims.end())
      continue; // the rule applies to other tensors
    std::vector<int> &split =
        layout.dims[static_cast<std::size_t>(named - dims.begin())];
    std::int64_t ranks = mesh.axes[at(axis)].size;
    if (!split.empty() && split[0] != axis)
      found.push_back(
          fmt::format("rule \"{}\": dimension {} is split over {} already",
                      shown, dim, mesh.axes[at(split[0])].name));
    else if (split.empty() && planner::placementOf(layout, axis) >= 0)
      found.push_back(fmt::format(
          "rule \"{}\": axis {} would split two dimensions of one tensor, {} "
          "and {}",
          shown, name, dims[at(planner::placementOf(layout, axis))].name, dim));
    else if (named->size % ranks != 0)
      found.push_back(fmt::format("rule \"{}\": {} {} does not divide by the "
                                  "{} ranks of {}; nearest that do: {}",
                                  shown, dim, named->size, ranks, name,
                                  nearestMultiples(ranks, named->size)));
    else
      split = {axis};
  }
  errors.insert(errors.end(), found.begin(), found.end());
  return found.empty() ? std::optional(std::move(layout)) : std::nullopt;
}

} // namespace mtplan::tools
