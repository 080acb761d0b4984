//===- shardy.cpp - #sdy.sharding<@mesh, [{"dp"}, {}]> --------------------===//
//
// Shardy's verifier makes the same checks of layouts: axes exist and are used
// once, and an empty closed dimension has no priority.
//
//===----------------------------------------------------------------------===//

#include "tools/exchange/shardy.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/integers.h"
#include "tools/exchange/text_scanner.h"

namespace mtplan::tools {

using planner::Layout;
using planner::Mesh;

namespace {

constexpr std::size_t kMostDims = 64;
constexpr std::size_t kMostAxes = 64;
constexpr int kMostRanks = 1 << 20;

std::string braced(const std::vector<int> &axes, const Mesh &mesh) {
  std::string text = "{";
  for (std::size_t i = 0; i < axes.size(); ++i)
    text += (i == 0 ? "" : ", ") +
            quotedName(mesh.axes[planner::at(axes[i])].name, '"');
  return text + '}';
}

void refuseSubAxis(TextScanner &scanner) {
  if (scanner.accept(":"))
    scanner.fail("a layout splits by whole axes; split the mesh's axis in two "
                 "and name the part");
}

// Reads {"x", "y", ?}p1.
void readDim(TextScanner &scanner, AxisReader &axes, ShardyLayout &sharding) {
  std::vector<int> dim;
  bool open = false;
  scanner.expect("{");
  while (!open && !scanner.failed()) {
    if (scanner.accept("?")) {
      open = true;
    } else if (scanner.nextIsQuote()) {
      dim.push_back(axes.next());
      refuseSubAxis(scanner);
      if (!scanner.accept(","))
        break;
    } else {
      break;
    }
  }
  scanner.expect("}");
  int priority = 0;
  if (scanner.accept("p")) {
    priority = static_cast<int>(scanner.integer(0, kMostRanks));
    if (dim.empty() && !open)
      scanner.fail("an empty closed dimension has no priority");
  }
  sharding.layout.dims.push_back(std::move(dim));
  sharding.open.push_back(open);
  sharding.priorities.push_back(priority);
}

std::vector<int> readAxes(TextScanner &scanner, AxisReader &axes) {
  std::vector<int> list;
  scanner.expect("=");
  scanner.expect("{");
  while (scanner.nextIsQuote()) {
    list.push_back(axes.next());
    refuseSubAxis(scanner);
    if (!scanner.accept(","))
      break;
  }
  scanner.expect("}");
  return list;
}

// Reads @name or @"name".
std::string readSymbol(TextScanner &scanner) {
  scanner.expect("@");
  return scanner.nextIsQuote() ? scanner.quoted() : scanner.word();
}

} // namespace

std::string writeShardyMesh(const Mesh &mesh, const std::string &name) {
  std::string text = fmt::format("sdy.mesh @{} = <[", name);
  for (std::size_t i = 0; i < mesh.axes.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : ", ",
                        quotedName(mesh.axes[i].name, '"'), mesh.axes[i].size);
  return text + "]>";
}

std::optional<NamedMesh> readShardyMesh(const std::string &text,
                                        Errors &errors) {
  TextScanner scanner(text);
  NamedMesh named;
  scanner.expect("sdy.mesh");
  named.name = readSymbol(scanner);
  scanner.expect("=");
  scanner.accept("#sdy.mesh");
  scanner.expect("<");
  scanner.expect("[");
  std::int64_t ranks = 1;
  while (scanner.nextIsQuote()) {
    planner::MeshAxis axis;
    axis.name = scanner.quoted();
    scanner.expect("=");
    axis.size = static_cast<int>(scanner.integer(1, kMostRanks));
    ranks *= axis.size;
    if (named.mesh.find(axis.name) >= 0)
      scanner.fail(fmt::format("axis \"{}\" is declared twice", axis.name));
    named.mesh.axes.push_back(std::move(axis));
    if (ranks > kMostRanks || named.mesh.axes.size() > kMostAxes)
      scanner.fail(
          fmt::format("more than {} ranks or {} axes", kMostRanks, kMostAxes));
    if (!scanner.accept(","))
      break;
  }
  scanner.expect("]");
  if (scanner.accept(","))
    scanner.fail("device_ids are not read: mtplan numbers ranks by the axes, "
                 "major first");
  scanner.expect(">");
  scanner.expectEnd();
  if (!scanner.failed())
    return named;
  errors.push_back(scanner.error());
  return std::nullopt;
}

std::string writeShardy(const Layout &layout, const Mesh &mesh,
                        const std::string &meshName, Errors &errors) {
  if (!layout.partial.empty() && layout.reduction != planner::Reduction::sum) {
    errors.emplace_back("Shardy has no word for a partial maximum");
    return {};
  }
  std::string text = fmt::format("#sdy.sharding<@{}, [", meshName);
  for (std::size_t d = 0; d < layout.dims.size(); ++d)
    text += (d == 0 ? "" : ", ") + braced(layout.dims[d], mesh);
  text += ']';
  if (!layout.partial.empty())
    text += ", unreduced=" + braced(layout.partial, mesh);
  return text + '>';
}

std::optional<ShardyLayout> readShardy(const std::string &text,
                                       const NamedMesh &mesh, Errors &errors) {
  TextScanner scanner(text);
  AxisReader axes(scanner, mesh.mesh);
  ShardyLayout sharding;
  scanner.expect("#sdy.sharding");
  scanner.expect("<");
  std::string name = readSymbol(scanner);
  if (!scanner.failed() && name != mesh.name)
    scanner.fail(fmt::format("mesh @{}, but the mesh given is @{}",
                             name.substr(0, 60), mesh.name));
  scanner.expect(",");
  scanner.expect("[");
  if (!scanner.accept("]")) {
    do {
      readDim(scanner, axes, sharding);
      if (sharding.layout.dims.size() > kMostDims)
        scanner.fail(fmt::format("more than {} dimensions", kMostDims));
    } while (scanner.accept(","));
    scanner.expect("]");
  }
  while (scanner.accept(",")) {
    if (scanner.accept("replicated")) {
      readAxes(scanner, axes); // a layout leaves replicated axes unused
    } else if (scanner.accept("unreduced")) {
      sharding.layout.partial = readAxes(scanner, axes);
      std::ranges::sort(sharding.layout.partial);
    } else {
      scanner.fail("expected replicated={...} or unreduced={...}");
    }
  }
  scanner.expect(">");
  scanner.expectEnd();
  if (!scanner.failed())
    return sharding;
  errors.push_back(scanner.error());
  return std::nullopt;
}

} // namespace mtplan::tools
