//===- stage_places.h - Where everything of a stage lies --------*- C++ -*-===//
//
// One arena for each kind of life:
//
//   parameters   weights as computed with, by label and copy
//   optimizer    moments and masters
//   host         the same where they are offloaded, then with masters of all
//                weights, and what goes between it and the device
//   gradients    accumulators of parameters, and where they are scattered early
//                what that leaves of them
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
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "ir/mtp.h"
#include "passes/memory/offsets.h"
#include "passes/schedule/stage_contents.h"

namespace mtplan::passes {

inline constexpr std::int64_t kAlignment = 256; ///< bytes, of every offset

/// How full the workspaces are: the bytes they have, and the most that are
/// alive at one moment.
struct Fill {
  std::int64_t used = 0, peak = 0;
};

class StagePlaces {
public:
  /// \param gradientType  of accumulators of narrower gradients; null: the
  /// gradient's own
  /// \param early  gradients are scattered while backward runs
  /// \param onHost  the optimizer is offloaded
  StagePlaces(StageContents stageContents, mlir::Type gradientType, bool early,
              bool onHost)
      : contents(std::move(stageContents)), wider(gradientType),
        scattersEarly(early), offloads(onHost) {}

  /// Writes `mtp.places` and `mtp.state`. Fails with a diagnostic where a value
  /// would need two places.
  mlir::LogicalResult run();

  const std::vector<Fill> &fills() const { return workspaces; }

private:
  /// An array in an arena; see PlaceAttr.
  struct Array {
    llvm::StringRef arena;
    std::int64_t offset = 0, size = 0, entries = 1, stride = 0, slots = 1,
                 slotStride = 0;
  };
  /// Names an array by label, and by segment if the label has a `*`.
  using LabelKey = std::pair<mlir::Operation *, std::string>;

  // stage_places.cpp places parameters and accumulators.
  Array allocate(llvm::StringRef arena, std::int64_t size, std::int64_t entries,
                 std::int64_t slots = 1);
  ir::PlaceAttr placeIn(const Array &array, std::int64_t entry,
                        std::int64_t step, mlir::Type element) const;
  LabelKey keyOf(ir::SegmentOp segment, mlir::StringAttr label) const;
  ir::PlaceAttr placeOfLabel(std::map<LabelKey, Array> &arrays,
                             llvm::StringRef arena, ir::SegmentOp segment,
                             mlir::StringAttr label, mlir::Type type,
                             mlir::Type element);
  mlir::Type keptAs(mlir::Value value) const;
  mlir::Type accumulated(mlir::StringRef label, mlir::Type element) const;
  void placeLabels(ir::SegmentOp segment);
  ir::PlaceAttr placeOfSum(ir::SegmentOp segment, ir::AccumulateOp op);
  std::int64_t bytesBehind(mlir::StringAttr label, mlir::Type element) const;
  void placeSaved(ir::SegmentOp segment);
  /// Values that are alive between two operators of a program only.
  struct Within {
    std::vector<mlir::Value> roots; ///< values that have a place of their own
    std::vector<Lifetime> lives; ///< of the roots, then of the carried values
    std::vector<Row> rows;       ///< roots that one batched product may use
    /// Values that share the place of a root.
    std::vector<std::pair<mlir::Value, mlir::Value>> sharing;
  };
  Within livesWithin(mlir::Block &block);
  static Offsets withRows(const Within &within, std::int64_t room);
  void place(const Within &within, const Offsets &offsets);
  void placeWithin();
  std::int64_t slotsOf(std::int64_t chunk) const;
  void write();

  // chains.cpp places what copies carry on.
  struct Link {
    std::size_t chain = 0;
    std::int64_t entry = 0, step = 0;
  };
  struct Chain {
    mlir::Type type;
    std::int64_t entries = 1;
    bool saved = false;
    Array array = {};
  };
  /// A part of the workspace, counted from its start, that carried values take.
  struct Handed {
    mlir::Value value; ///< alive as long as this value; null: always
    std::int64_t offset = 0, bytes = 0;
  };
  mlir::LogicalResult placeChains(std::int64_t chunk);
  mlir::LogicalResult followForward(std::vector<ir::SegmentOp> &chunk);
  mlir::LogicalResult followBackward(std::vector<ir::SegmentOp> &chunk);
  Link linkTo(mlir::Value handed, std::size_t position,
              const std::vector<Link> &before, std::int64_t repeat,
              mlir::Block &block, mlir::Type type);
  void handToItself(ir::YieldOp yield, const std::vector<Link> &before,
                    std::int64_t repeat, std::int64_t step);
  void keepHanded(mlir::Block &block, std::int64_t start);
  ir::PlaceAttr placeOf(const Link &link);

  // update_places.cpp places what the update makes.
  mlir::LogicalResult placeUpdate();
  mlir::LogicalResult dealIntoPrograms();
  std::int64_t madeOf(ir::AdamwOp op) const;
  ir::ReduceScatterOp scatterOf(ir::AccumulatedOp sum) const;
  /// The segment that holds a parameter, and the copies that an operation
  /// means.
  struct Meant {
    ir::SegmentOp holder;              ///< null: the parameter has no copies
    std::int64_t first = 0, count = 1; ///< counted from the holder's first
  };
  mlir::FailureOr<Meant> meantBy(mlir::Operation *op) const;
  Array allocateCopies(llvm::StringRef arena, std::int64_t &end,
                       std::int64_t size, const Meant &meant);
  ir::PlaceAttr placeCopies(const Array &array, const Meant &meant,
                            mlir::Type element) const;
  void placeState(ir::AdamwOp op, const Meant &meant);
  void placeResult(mlir::Operation *op, const Meant &meant,
                   std::int64_t &workspaceEnd);

  StageContents contents;
  mlir::Type wider;
  bool scattersEarly, offloads;
  /// Labels of parameters; other labels are reports.
  std::set<std::string> trained;
  std::map<std::string, std::int64_t> ends; ///< by arena
  std::map<LabelKey, Array> parameters, accumulators;
  /// By label, the sums of gradients beside the first, with their segments.
  std::map<std::string, std::vector<std::pair<mlir::Operation *, Array>>>
      otherSums;
  std::vector<Chain> chains;
  llvm::DenseMap<mlir::Value, Link> links; ///< of arguments and yielded values
  llvm::DenseMap<mlir::Value, ir::PlaceAttr> places;
  std::map<mlir::Block *, std::vector<Handed>> handedIn;
  std::vector<Fill> workspaces;
  std::int64_t updateEnd = 0; ///< in the arena of activations
};

/// Whether an operation of the backward half reads `value` of the forward half.
bool isSaved(mlir::Value value);

/// Returns the bytes of a tensor whose elements are of type `element`.
std::int64_t bytesOf(mlir::Type type, mlir::Type element);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_STAGE_PLACES_H
