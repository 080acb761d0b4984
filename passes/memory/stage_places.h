//===- stage_places.h - Where everything of a stage lies --------*- C++ -*-===//
//
// One arena for each kind of life:
//
//   parameters   weights as computed with, by label and copy
//   optimizer    moments and masters
//   host         the same where they are offloaded, then with masters of all
//                weights, and what goes between it and the device
//   gradients    accumulators of parameters, and the shards that are left of
//                those that are scattered beside the backward
//   activations  what backward reads of forward, for as many micro-batches as
//                are in flight; once all are through, what the update makes
//   workspace    accumulators of reports; then by turns what goes from one copy
//                to the next and, where a program leaves room beside what it
//                takes and gives, what lives within that program
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

/// How full the workspaces are: the bytes they have, and the most that are
/// alive at one moment.
struct Fill {
  std::int64_t used = 0, peak = 0;
};

class StagePlaces {
public:
  /// \param gradientType  of accumulators of narrower gradients; null: the
  /// gradient's own
  /// \param onHost  the optimizer is offloaded
  StagePlaces(StageContents stageContents, mlir::Type gradientType, bool onHost)
      : contents(std::move(stageContents)), offloads(onHost),
        labels(contents, arenas, gradientType) {}
  StagePlaces(const StagePlaces &) = delete;
  StagePlaces &operator=(const StagePlaces &) = delete;

  /// Writes `mtp.places` and `mtp.state`. Fails with a diagnostic where a value
  /// would need two places.
  mlir::LogicalResult run();

  const std::vector<Fill> &fills() const { return workspaces; }

private:
  /// Values that are alive between two operators of a program only.
  struct Within {
    std::vector<mlir::Value> roots; ///< values that have a place of their own
    std::vector<Lifetime> lives; ///< of the roots, then of the carried values
    /// Values that share the place of a root.
    std::vector<std::pair<mlir::Value, mlir::Value>> sharing;
    std::vector<Row> rows;                   ///< roots that a batch needs
    std::vector<std::int64_t> batchesOfRows; ///< by row
    std::set<std::int64_t> rejected;         ///< batches without a place
  };
  /// A part of the workspace, counted from its start, that carried values take.
  struct Carried {
    mlir::Value value; ///< alive as long as this value; null: always
    std::int64_t offset = 0, bytes = 0;
  };

  std::int64_t slotsOf(std::int64_t chunk) const;
  mlir::LogicalResult placeChains(std::int64_t chunk);
  void keepCarried(mlir::Block &block, const CarriedChains &carried,
                   const std::vector<Array> &arrays, std::int64_t start);
  void placeSaved(ir::SegmentOp segment);
  Within livesWithin(mlir::Block &block);
  static Offsets withRows(Within &within, std::int64_t room);
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
