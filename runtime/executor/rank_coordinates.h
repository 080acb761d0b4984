//===- rank_coordinates.h - The coordinates of a rank -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_RANK_COORDINATES_H
#define MTPLAN_RUNTIME_EXECUTOR_RANK_COORDINATES_H

#include "runtime/backend/kernel.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Holds a rank's pipeline stage, and its coordinates on the axes of the mesh.
class RankCoordinates {
public:
  /// Throws std::runtime_error if no stage contains the rank.
  RankCoordinates(const Plan &plan, int rank);

  /// Returns the index of the rank's stage in Plan::stages.
  int stage() const { return stageNumber; }
  /// Returns the rank's coordinate on an axis; `axis` is an index into
  /// Plan::mesh.
  int coordinateOn(int axis) const {
    return places[static_cast<std::size_t>(axis)];
  }
  int ranksOn(int axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  /// Returns the rank of `stage` with the same index in Stage::ranks as this
  /// rank.
  int rankOfStage(const Plan &plan, int stage) const;
  /// Returns the rank's shard of the tensor, with its offset in the global
  /// tensor.
  TensorView viewOf(const Tensor &tensor) const;

private:
  /// `index` is the rank's index in Stage::ranks.
  int stageNumber = -1, index = 0;
  std::vector<int> places, sizes; ///< coordinates and sizes, by axis
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_RANK_COORDINATES_H
