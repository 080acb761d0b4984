//===- rank_place.h - The place of a rank in a plan -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RANK_PLACE_H
#define MTPLAN_RUNTIME_EXECUTOR_RANK_PLACE_H

#include "runtime/backend/kernel.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// A rank's stage, and its coordinates on the axes of the mesh.
class RankPlace {
public:
  /// Throws std::runtime_error if no stage has the rank.
  RankPlace(const Plan &plan, int rank);

  int stage() const { return stageNumber; }
  int placeOn(int axis) const { return places[static_cast<std::size_t>(axis)]; }
  int ranksOn(int axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  /// Returns the rank with the same coordinates in another stage.
  int rankOfStage(const Plan &plan, int stage) const;
  /// Returns the rank's shard of the global tensor.
  TensorView viewOf(const Tensor &tensor) const;

private:
  int stageNumber = -1, index = 0; ///< in Stage::ranks
  std::vector<int> places, sizes;  ///< by axis
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_PLACE_H
