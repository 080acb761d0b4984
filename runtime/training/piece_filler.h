//===- piece_filler.h - Tensors whose values are drawn ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_TRAINING_PIECE_FILLER_H
#define MTPLAN_RUNTIME_TRAINING_PIECE_FILLER_H

#include <functional>
#include <optional>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/backend/tensor_view.h"

namespace mtplan::runtime {

/// Where values go, each rounded once.
struct Filled {
  ElementType type = ElementType::f32;
  std::byte *data = nullptr;
  Memory *memory = nullptr; ///< what `data` lies in
};

/// Gives a part of a piece its values, row-major. Called by several threads.
using DrawPart = std::function<void(const TensorView &part, double *values)>;

class PieceFiller {
public:
  /// \param theStaging  of the memory that is filled
  /// \param theThreads  at most, with the caller's, >= 1; no bit depends on it
  PieceFiller(Memory &theStaging, int theThreads)
      : staging(theStaging), threads(theThreads) {}

  /// Draws each value of `piece` once, into all of `tensors`. What the host
  /// does not see is uploaded some megabytes at a time.
  /// \throws what `draw` threw
  void fill(const TensorView &piece, const std::vector<Filled> &tensors,
            const DrawPart &draw);

private:
  std::byte *stageOf(std::int64_t bytes);

  Memory &staging;
  const int threads;
  std::optional<Allocation> stage;
  std::int64_t stageBytes = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_PIECE_FILLER_H
