//===- dtensor.cpp - (Shard(dim=0), Replicate(), Partial('sum')) ----------===//
//
// DTensor lists a placement per mesh axis, and an earlier axis splits a
// dimension first. Where a later axis is major, the earlier one becomes a
// _StridedShard, whose split factor is the number of pieces that later axes
// have made before it. The factor restores the order: an axis goes behind the
// shortest run of later axes whose product is its factor.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include <fmt/format.h>

#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/text_scanner.h"

namespace mtplan::tools {

using planner::Layout;
using planner::Mesh;
using planner::Reduction;

namespace {

std::int64_t sizeOf(const Mesh &mesh, int axis) {
  return mesh.axes[static_cast<std::size_t>(axis)].size;
}

// Returns the number of pieces that later, major axes have made before `axis`.
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
    scanner.take("dim=");
    placement.place =
        static_cast<int>(scanner.integer(0, static_cast<int>(rank) - 1));
    if (word == "_StridedShard") {
      scanner.expect(",");
      scanner.take("split_factor=");
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

// Inserts `axis` before the later axes of `dim`, except those that its factor
// marks as major.
bool insertAxis(std::vector<int> &dim, int axis, std::int64_t factor,
                const Mesh &mesh) {
  auto at = dim.begin();
  std::int64_t product = 1;
  while (product < factor && at != dim.end())
    product *= sizeOf(mesh, *at++);
  dim.insert(at, axis);
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
      std::int64_t factor =
          splitFactor(layout.dims[static_cast<std::size_t>(place)], axis, mesh);
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
  bool tuple = scanner.take("(");
  if (!tuple)
    scanner.expect("[");
  const char *close = tuple ? ")" : "]";
  bool more = !scanner.take(close);
  while (more && !scanner.failed()) {
    placements.push_back(readPlacement(scanner, rank));
    if (placements.size() > mesh.axes.size())
      scanner.fail(fmt::format("more placements than the mesh's {} axes",
                               mesh.axes.size()));
    bool comma = scanner.take(",");
    more = !scanner.take(close);
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
               !insertAxis(
                   layout.dims[static_cast<std::size_t>(placement.place)], axis,
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

} // namespace mtplan::tools
