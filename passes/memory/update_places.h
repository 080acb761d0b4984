//===- update_places.h - Where an update works ------------------*- C++ -*-===//
//
// Pieces of reduced gradients wait for the norm of all gradients. They are in
// the arena of activations, which is empty by then; or, so that backward may
// still run, where the whole gradient of the next copy was, which has been
// scattered. Whatever the number of copies, the latter takes room for one more
// piece. (Megatron's buffers keep a rank's piece within the whole, at an offset
// that depends on the rank; a place is the same on all ranks.) What is made of
// updated pieces is in the workspace, side by side for all parameters of a
// program, so that no parameter waits for another.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_UPDATE_PLACES_H
#define MTPLAN_PASSES_MEMORY_UPDATE_PLACES_H

#include "passes/memory/label_places.h"

namespace mtplan::passes {

/// Places what the update of a stage makes and keeps.
class UpdatePlaces {
public:
  /// All references must outlive the object.
  /// \param workspaceBytes  that forward and backward need anyway
  /// \param onHost  the optimizer is offloaded
  UpdatePlaces(const StageContents &stageContents, Arenas &stageArenas,
               const LabelPlaces &labelPlaces,
               llvm::DenseMap<mlir::Value, ir::PlaceAttr> &valuePlaces,
               std::int64_t workspaceBytes, bool onHost)
      : contents(stageContents), arenas(stageArenas), labels(labelPlaces),
        places(valuePlaces), workspace(workspaceBytes), offloads(onHost) {}

  /// Divides the update into programs, adds the places of its values and writes
  /// `mtp.state`. Fails with a diagnostic if an operation works for copies of
  /// several segments.
  mlir::LogicalResult place();

private:
  mlir::LogicalResult divideIntoPrograms();
  std::int64_t madeOf(ir::AdamwOp op) const;
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
  std::int64_t updateEnd = 0; ///< in the arena of activations
};

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_UPDATE_PLACES_H
