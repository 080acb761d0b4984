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

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"
#include "passes/memory/offsets.h"

namespace mtplan::passes {

inline constexpr std::int64_t kAlignment = 256; ///< bytes, of every offset

/// What one stage holds, of a partitioned module.
struct StageContents {
  std::vector<ir::SegmentOp> segments; ///< in module order
  ir::UpdateOp update;                 ///< may be null
  std::vector<ir::StageTask> tasks;
};

/// How full the workspaces are: bytes used, and the most that live at once.
struct Fill {
  std::int64_t used = 0, peak = 0;
};

class StagePlaces {
public:
  /// \param gradientType  of accumulators of narrower gradients; null: as
  /// theirs
  /// \param apart of a weight that several segments use, those that are not
  ///              repeated have sums of gradients of their own
  /// \param early  gradients are scattered while backward runs
  /// \param onHost  the optimizer is offloaded
  StagePlaces(StageContents stageContents, mlir::Type gradientType, bool apart,
              bool early, bool onHost)
      : contents(std::move(stageContents)), wider(gradientType),
        sumsPerUse(apart), scattersEarly(early), offloads(onHost) {}

  /// Writes `mtp.places` and `mtp.state`. Fails, with a diagnostic, where a
  /// value would have to be in two places.
  mlir::LogicalResult run();

  const std::vector<Fill> &fills() const { return workspaces; }

private:
  /// An array in an arena; see PlaceAttr.
  struct Array {
    llvm::StringRef arena;
    std::int64_t offset = 0, size = 0, entries = 1, stride = 0, slots = 1,
                 slotStride = 0;
  };
  /// Of a label without `*` segments do not matter; else an operation.
  using LabelKey = std::pair<mlir::Operation *, std::string>;

  // Parameters, accumulators; stage_places.cpp.
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
  /// Values that live between two operators of a program.
  struct Within {
    std::vector<mlir::Value> roots; ///< that have a place of their own
    std::vector<Lifetime> lives;    ///< of the roots, then of what is handed in
    std::vector<Lifetime> followers; ///< the same, see livesWithin
    std::vector<Row> rows; ///< of roots that may be one product's, if they fit
    std::vector<std::pair<mlir::Value, mlir::Value>> sharing; ///< with a root
  };
  Within livesWithin(mlir::Block &block);
  static Offsets withRows(const Within &within, std::int64_t room);
  void place(const Within &within, const Offsets &offsets,
             const std::vector<Lifetime> &lives);
  void placeWithin();
  std::int64_t slotsOf(std::int64_t chunk) const;
  void write();

  // What copies hand on, chains.cpp.
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
  /// A part of the workspace that a program finds taken, from its start.
  struct Handed {
    mlir::Value value; ///< while it lives; null: all the while
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

  // The update, update_places.cpp.
  mlir::LogicalResult placeUpdate();
  mlir::LogicalResult dealIntoPrograms();
  std::int64_t madeOf(ir::AdamwOp op) const;
  ir::ReduceScatterOp scatterOf(ir::AccumulatedOp sum) const;
  /// Whose parameter it is, and which of its copies are meant.
  struct Meant {
    ir::SegmentOp holder;              ///< null: of no copies
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
  bool sumsPerUse, scattersEarly, offloads;
  std::set<std::string> trained; ///< labels of parameters; others are reports
  std::map<std::string, std::int64_t> ends; ///< by arena
  std::map<LabelKey, Array> parameters, accumulators;
  /// By label: sums of gradients beside the first, with whose they are.
  std::map<std::string, std::vector<std::pair<mlir::Operation *, Array>>>
      otherSums;
  std::map<std::string, mlir::Operation *> firstUser; ///< by label
  std::vector<Chain> chains;
  llvm::DenseMap<mlir::Value, Link> links; ///< arguments, and what is yielded
  llvm::DenseMap<mlir::Value, ir::PlaceAttr> places;
  std::map<mlir::Block *, std::vector<Handed>> handedIn;
  std::vector<Fill> workspaces;
  std::int64_t updateEnd = 0; ///< in the arena of activations
};

/// Whether something of the backward half reads `value` of the forward half.
bool isSaved(mlir::Value value);

/// Whether its labels have a `*`, be there one copy or many.
bool isOfCopies(ir::SegmentOp segment);

/// Bytes of a tensor whose elements are of `element`.
std::int64_t bytesOf(mlir::Type type, mlir::Type element);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_STAGE_PLACES_H
