//===- rank_coordinates.cpp - The coordinates of a rank -------------------===//

#include "runtime/executor/rank_coordinates.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mtplan::runtime {

RankCoordinates::RankCoordinates(const Plan &plan, int rank) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<int> &ranks = plan.stages[s].ranks;
    auto found = std::ranges::find(ranks, rank);
    if (found == ranks.end())
      continue;
    stageNumber = static_cast<int>(s);
    index = static_cast<int>(found - ranks.begin());
  }
  if (stageNumber < 0)
    throw std::runtime_error("no stage of the plan has rank " +
                             std::to_string(rank) + " of " +
                             std::to_string(plan.ranks));
  int stride = plan.ranks;
  for (const Axis &axis : plan.mesh) {
    stride /= axis.size;
    places.push_back(rank / stride % axis.size);
    sizes.push_back(axis.size);
  }
}

int RankCoordinates::rankOfStage(const Plan &plan, int stage) const {
  return plan.stages[static_cast<std::size_t>(stage)]
      .ranks[static_cast<std::size_t>(index)];
}

TensorView RankCoordinates::viewOf(const Tensor &tensor) const {
  TensorView view;
  view.type = tensor.type;
  view.shape = tensor.shape;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t place = 0, ranks = 1;
    if (d < tensor.split.size())
      for (int axis : tensor.split[d]) {
        place = place * ranksOn(axis) + coordinateOn(axis);
        ranks *= ranksOn(axis);
      }
    view.pieces.push_back({place * tensor.shape[d], ranks * tensor.shape[d]});
  }
  return view;
}

} // namespace mtplan::runtime
