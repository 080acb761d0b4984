//===- placement.h - Overlap of buffers in memory ---------------*- C++ -*-===//
//
// A piece is one entry of a buffer in one slot. The pieces of a stage are
// numbered by buffer, entry and slot.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLACEMENT_H
#define MTPLAN_RUNTIME_PLAN_PLACEMENT_H

#include <set>
#include <utility>
#include <vector>

#include "runtime/plan/plan_checks.h"

namespace mtplan::runtime {

class Placement {
public:
  /// Adds an error to `list` for each pair of arenas of the same class, and for
  /// each buffer that exceeds its arena, overlaps itself, or overlaps memory
  /// that is kept over steps.
  Placement(const Stage &placed, std::size_t number, Faults &list);

  /// Returns whether all pieces are analysed. With too many pieces or overlaps,
  /// the function returns false, and no other member may be used.
  bool complete() const { return whole; }
  std::size_t pieces() const { return owners.size(); }
  /// Returns the piece that holds `entry`, which must be >= 0, for a
  /// micro-batch.
  std::size_t pieceOf(int buffer, std::int64_t entry, int microBatch) const;
  int bufferOf(std::size_t piece) const { return owners[piece]; }
  /// Returns the pieces of other buffers that share bytes with `piece`.
  const std::vector<std::size_t> &overlaps(std::size_t piece) const {
    return others[piece];
  }
  /// Calls `act(piece, isWritten)` for every tensor of an instruction in one
  /// run. Skips negative entries, which checkMemory reports.
  template <typename Act>
  void forEachPiece(const Instruction &one, int copy, int microBatch,
                    Act act) const {
    for (const auto *tensors : {&one.inputs, &one.outputs})
      for (const Tensor &tensor : *tensors)
        if (const std::int64_t entry =
                tensor.entry + std::int64_t{copy} * tensor.entryStep;
            entry >= 0)
          act(pieceOf(tensor.buffer, entry, microBatch),
              tensors == &one.outputs);
  }

  /// Calls `act` for all pieces of forEachPiece, and for all pieces that
  /// overlap one of these.
  template <typename Act>
  void forEachOverlap(const Instruction &one, int copy, int microBatch,
                      Act act) const {
    forEachPiece(one, copy, microBatch, [&](std::size_t piece, bool writes) {
      act(piece, writes);
      for (const std::size_t other : overlaps(piece))
        act(other, writes);
    });
  }

  /// Returns whether the buffer keeps its contents from step to step.
  bool keeps(int buffer) const { return kept[indexed(buffer)]; }

private:
  struct Interval {
    std::int64_t start, end;
    std::size_t piece;
  };
  void place(std::size_t buffer);
  void sweep(std::vector<Interval> &intervals);
  void meet(std::size_t a, std::size_t b);

  const Stage &stage;
  std::size_t s;
  Faults &faults;
  bool whole = true;
  std::vector<std::size_t> bases;               ///< by buffer: its first piece
  std::vector<int> owners;                      ///< by piece: its buffer
  std::vector<bool> kept;                       ///< by buffer: see keeps()
  std::vector<std::vector<std::size_t>> others; ///< by piece: its overlaps
  std::vector<std::vector<Interval>> byArena;
  std::size_t pairs = 0;
  std::set<std::pair<int, int>> reported;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLACEMENT_H
