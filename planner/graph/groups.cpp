//===- groups.cpp - The ranks of each collective's groups -----------------===//

#include "planner/graph/groups.h"

#include <algorithm>
#include <cassert>

namespace mtplan::planner {

namespace {

// Returns the distances from a group's first rank to all of its members,
// ascending.
std::vector<int> offsetsOf(const Mesh &mesh, const std::vector<int> &axes) {
  std::vector<int> offsets{0};
  for (int axis : axes) {
    assert(axis >= 0 && axis < static_cast<int>(mesh.axes.size()));
    std::vector<int> further;
    for (int offset : offsets)
      for (int i = 0; i < mesh.axes[static_cast<std::size_t>(axis)].size; ++i)
        further.push_back(offset + i * mesh.stride(axis));
    offsets = std::move(further);
  }
  std::ranges::sort(offsets);
  return offsets;
}

} // namespace

std::vector<std::vector<int>> groupsOf(const Mesh &mesh,
                                       const std::vector<int> &axes) {
  assert(std::ranges::is_sorted(axes));
  std::vector<int> others;
  for (int axis = 0; axis < static_cast<int>(mesh.axes.size()); ++axis)
    if (std::ranges::find(axes, axis) == axes.end())
      others.push_back(axis);
  std::vector<std::vector<int>> groups;
  for (int first : offsetsOf(mesh, others)) {
    std::vector<int> &group = groups.emplace_back(offsetsOf(mesh, axes));
    for (int &rank : group)
      rank += first;
  }
  return groups;
}

} // namespace mtplan::planner
