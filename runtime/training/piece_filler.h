//===- piece_filler.h - Fills tensors with computed values ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_TRAINING_PIECE_FILLER_H
#define MTPLAN_RUNTIME_TRAINING_PIECE_FILLER_H

#include <functional>
#include <optional>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/backend/tensor_view.h"

namespace mtplan::runtime {

/// Describes a tensor that receives computed values. Each value is rounded
/// once, to the tensor's type.
struct Filled {
  ElementType type = ElementType::f32;
  std::byte *data = nullptr;
  Memory *memory = nullptr;
};

/// Computes the values of a part of a shard, row-major. Several threads call
/// the function concurrently.
using DrawPart = std::function<void(const TensorView &part, double *values)>;

class PieceFiller {
public:
  /// \param theStaging  staging() of the memory that is filled
  /// \param theThreads  limit of threads, >= 1, including the caller's; results
  /// do not depend on the limit
  PieceFiller(Memory &theStaging, int theThreads)
      : staging(theStaging), threads(theThreads) {}

  /// Computes each value of `piece` once and stores it in all of `tensors`.
  /// Values for device memory are uploaded in batches of several megabytes.
  /// \throws any exception of `draw`
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
