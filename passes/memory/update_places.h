//===- update_places.h - Memory of an update --------------------*- C++ -*-===//
//
// Shards of reduced gradients are kept until the norm of all gradients is
// known. The shards are in the arena of activations, which is free after
// backward. If the reduce-scatter overlaps with backward, the shard of a layer
// overwrites the gradient of the next layer, which has already been scattered.
// Memory for one additional shard therefore suffices for any number of layers.
// (Megatron-LM keeps a rank's shard within the full buffer, at an offset that
// depends on the rank. Offsets here are the same on all ranks.) Values computed
// from updated shards are in the workspace. All parameters of a program have
// separate offsets in the workspace, so that no parameter waits for another.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_UPDATE_PLACES_H
#define MTPLAN_PASSES_MEMORY_UPDATE_PLACES_H

#include "passes/memory/label_places.h"

namespace mtplan::passes {

class UpdatePlaces {
public:
  /// All references must outlive the object.
  /// \param workspaceBytes  bytes that forward and backward need
  /// \param onHost  whether the optimizer is offloaded
  UpdatePlaces(const StageContents &stageContents, Arenas &stageArenas,
               const LabelPlaces &labelPlaces,
               llvm::DenseMap<mlir::Value, ir::PlaceAttr> &valuePlaces,
               std::int64_t workspaceBytes, bool onHost)
      : contents(stageContents), arenas(stageArenas), labels(labelPlaces),
        places(valuePlaces), workspace(workspaceBytes), offloads(onHost) {}

  /// Divides the update into programs, adds the values of the update to
  /// `valuePlaces` and writes `mtp.state`. Fails, with a diagnostic, if an
  /// operation covers layers of several segments.
  mlir::LogicalResult place();

private:
  mlir::LogicalResult divideIntoPrograms();
  std::int64_t madeOf(ir::AdamwOp op) const;
  /// Returns the segment of the layers `meant`, or the stage's first segment if
  /// the label has no `*`.
  ir::SegmentOp holderOf(const UpdatedCopies &meant) const {
    return meant.holder ? meant.holder : contents.segments.front();
  }
  Array allocateCopies(llvm::StringRef arena, std::int64_t &end,
                       std::int64_t size, const UpdatedCopies &meant);
  void placeState(ir::AdamwOp op, const UpdatedCopies &meant);
  void placeResult(mlir::Operation *op, const UpdatedCopies &meant,
                   std::int64_t &workspaceEnd);

  const StageContents &contents;
  Arenas &arenas;
  const LabelPlaces &labels;
  llvm::DenseMap<mlir::Value, ir::PlaceAttr> &places;
  const std::int64_t workspace;
  const bool offloads;
  std::int64_t updateEnd = 0; ///< bytes used in the arena of activations
};

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_UPDATE_PLACES_H
