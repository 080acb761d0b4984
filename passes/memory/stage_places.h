//===- stage_places.h - Memory of a pipeline stage --------------*- C++ -*-===//
//
// Tensors are in these arenas:
//
//   parameters   weights in the precision of compute, by label and layer
//   optimizer    moments and master weights
//   host         moments and masters of all weights if the optimizer is
//                offloaded, and buffers for copies from and to the device
//   gradients    gradient accumulators, and the shards of gradients whose
//                reduce-scatter overlaps with backward
//   activations  forward values that backward reads, for the micro-batches in
//                flight; after backward, intermediate values of the update
//   workspace    accumulators of reports; then, in memory that programs reuse,
//                values carried from layer to layer, weights gathered ahead
//                and values that live within one program
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_STAGE_PLACES_H
#define MTPLAN_PASSES_MEMORY_STAGE_PLACES_H

#include <map>
#include <set>
#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "passes/memory/carried_chains.h"
#include "passes/memory/label_places.h"
#include "passes/memory/offsets.h"

namespace mtplan::passes {

/// Holds the bytes of a program's workspace, and the peak of its live bytes.
struct Fill {
  std::int64_t used = 0, peak = 0;
};

class StagePlaces {
public:
  /// \param gradientType  type of the accumulators of gradients that have a
  /// narrower type; null if each accumulator has the type of its gradient
  /// \param onHost  whether the optimizer is offloaded
  StagePlaces(StageContents stageContents, mlir::Type gradientType, bool onHost)
      : contents(std::move(stageContents)), offloads(onHost),
        labels(contents, arenas, gradientType) {}
  StagePlaces(const StagePlaces &) = delete;
  StagePlaces &operator=(const StagePlaces &) = delete;

  /// Writes `mtp.places` and `mtp.state`. Fails, with a diagnostic, if a value
  /// would need two offsets.
  mlir::LogicalResult run();

  const std::vector<Fill> &fills() const { return workspaces; }

private:
  struct Within {
    std::vector<mlir::Value> roots; ///< values with their own offset
    /// Lists the live ranges of the roots, and then those of carried values.
    std::vector<Lifetime> lives;
    /// Lists values that share the memory of a root, with their roots.
    std::vector<std::pair<mlir::Value, mlir::Value>> sharing;
    /// Lists by row the indices in `roots` of values that must be adjacent.
    std::vector<Row> rows;
    std::vector<std::int64_t> batchesOfRows; ///< batch number of each row
    std::set<std::int64_t> rejected; ///< numbers of the dissolved batches
  };
  struct Carried {
    mlir::Value value; ///< if null, the bytes are always alive
    std::int64_t offset = 0, bytes = 0;
  };

  std::int64_t slotsOf(std::int64_t chunk) const;
  mlir::LogicalResult placeChains(std::int64_t chunk);
  void keepCarried(mlir::Block &block, const CarriedChains &carried,
                   const std::vector<Array> &arrays, std::int64_t start);
  void placeBlocks(llvm::ArrayRef<ir::SegmentOp> segments, bool forward,
                   std::int64_t start);
  void placeSaved(ir::SegmentOp segment);
  Within livesWithin(mlir::Block &block);
  static Offsets withRows(Within &within, std::int64_t limit);
  void place(const Within &within, const Offsets &offsets);
  void placeWithin();
  void write();

  StageContents contents;
  bool offloads;
  Arenas arenas;
  LabelPlaces labels;
  llvm::DenseMap<mlir::Value, ir::PlaceAttr> places;
  std::map<mlir::Block *, std::vector<Carried>> carriedIn;
  std::vector<Fill> workspaces;
};

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_STAGE_PLACES_H
