//===- boundary_layouts.cpp - How values may cross between segments -------===//

#include "planner/index.h"
#include "planner/search/segment_problem.h"

namespace mtplan::planner {

std::vector<Layout> boundaryLayouts(const Tensor &tensor,
                                    const Setting &setting) {
  const int tensorAxis = tensorAxisOf(setting.mesh);
  auto splitOf = [&](std::size_t d) {
    return static_cast<int>(d) == tensor.batchDim ? Split::batch
           : d + 1 == tensor.shape.size()         ? Split::hidden
                                                  : Split::sequence;
  };
  Layout base = Layout::whole(tensor.shape.size());
  for (int axis = 0; axis < tensorAxis; ++axis)
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      Layout layout = withPlacement(base, axis, static_cast<int>(d));
      if (setting.mesh.axes[at(axis)].size > 1 &&
          setting.rules[at(axis)].has(splitOf(d)) &&
          divides(tensor.shape, layout, setting.mesh)) {
        base = layout;
        break;
      }
    }
  auto wanted = [&](int placement) {
    return !setting.boundary || *setting.boundary == placement;
  };
  std::vector<Layout> layouts;
  if (setting.mesh.axes[at(tensorAxis)].size == 1 || wanted(kWhole))
    layouts.push_back(base);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    Layout layout = withPlacement(base, tensorAxis, static_cast<int>(d));
    if (setting.mesh.axes[at(tensorAxis)].size > 1 &&
        wanted(static_cast<int>(d)) &&
        setting.rules[at(tensorAxis)].has(splitOf(d)) &&
        divides(tensor.shape, layout, setting.mesh))
      layouts.push_back(layout);
  }
  return layouts;
}

} // namespace mtplan::planner
