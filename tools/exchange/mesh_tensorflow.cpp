//===- mesh_tensorflow.cpp - batch:dp;hidden:tp ---------------------------===//

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/text_scanner.h"
#include "tools/text/nearest_numbers.h"

namespace mtplan::tools {

using planner::Layout;
using planner::Mesh;

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
      errors.push_back(
          fmt::format("Mesh-TensorFlow splits a dimension over one "
                      "axis, but {} is split over {}",
                      dims[d].name, layout.dims[d].size()));
    else if (layout.dims[d].size() == 1)
      rules += fmt::format(
          "{}{}:{}", rules.empty() ? "" : ";", dims[d].name,
          mesh.axes[static_cast<std::size_t>(layout.dims[d][0])].name);
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
      found.push_back(fmt::format("rule \"{}\": no axis \"{}\"; the mesh has "
                                  "{}",
                                  shown, name.substr(0, 60), axisNames(mesh)));
      continue;
    }
    auto named = std::ranges::find(dims, dim, &NamedDim::name);
    if (named == dims.end())
      continue; // the rule applies to other tensors
    std::vector<int> &split =
        layout.dims[static_cast<std::size_t>(named - dims.begin())];
    std::int64_t ranks = mesh.axes[static_cast<std::size_t>(axis)].size;
    if (!split.empty() && split[0] != axis)
      found.push_back(fmt::format(
          "rule \"{}\": dimension {} is split over {} "
          "already",
          shown, dim, mesh.axes[static_cast<std::size_t>(split[0])].name));
    else if (split.empty() && planner::placementOf(layout, axis) >= 0)
      found.push_back(fmt::format(
          "rule \"{}\": axis {} would split two dimensions of one tensor, {} "
          "and {}",
          shown, name,
          dims[static_cast<std::size_t>(planner::placementOf(layout, axis))]
              .name,
          dim));
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
