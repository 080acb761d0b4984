//===- tensor_layouts.h - Layouts over the tensor axes ----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_TENSOR_LAYOUTS_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_TENSOR_LAYOUTS_H

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/integers.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::planner {

/// Returns `base` with every allowed placement of the tensor axes that have
/// several ranks, replicated ones first. Layouts that split a dimension into
/// unequal shards are left out.
/// \param allows  says whether an axis may have a placement: kReplicated or the
/// dimension that it splits
template <typename Allows>
std::vector<Layout> tensorLayouts(const Layout &base,
                                  const std::vector<std::int64_t> &shape,
                                  const Mesh &mesh, Allows allows) {
  std::vector<Layout> layouts{base};
  for (int axis : tensorAxesOf(mesh)) {
    if (mesh.axes[at(axis)].size == 1)
      continue;
    std::vector<Layout> more;
    for (const Layout &layout : layouts) {
      if (allows(axis, kReplicated))
        more.push_back(layout);
      for (int d = 0; d < std::ssize(shape); ++d) {
        Layout split = withPlacement(layout, axis, d);
        if (allows(axis, d) && divides(shape, split, mesh))
          more.push_back(std::move(split));
      }
    }
    layouts = std::move(more);
  }
  return layouts;
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_TENSOR_LAYOUTS_H
