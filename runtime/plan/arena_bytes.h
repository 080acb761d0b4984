//===- arena_bytes.h - The place of a tensor in its arena -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_ARENA_BYTES_H
#define MTPLAN_RUNTIME_PLAN_ARENA_BYTES_H

#include <cstdint>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

struct ArenaBytes {
  int arena = 0; ///< of Stage::arenas
  std::int64_t begin = 0, end = 0;

  bool meets(const ArenaBytes &other) const {
    return arena == other.arena && begin < other.end && other.begin < end;
  }
};

/// Returns the bytes of the tensor for a layer and a micro-batch.
/// \param stage  has passed checkPlan
inline ArenaBytes arenaBytesOf(const Stage &stage, const Tensor &tensor,
                               int copy, int microBatch) {
  const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
  const std::int64_t entry =
      (tensor.entry + std::int64_t{copy} * tensor.entryStep) % buffer.entries;
  const std::int64_t begin = buffer.offset + entry * buffer.entryStride +
                             microBatch % buffer.slots * buffer.slotStride;
  std::int64_t bytes = bytesOf(tensor.type);
  for (const std::int64_t size : tensor.shape)
    bytes *= size;
  return {buffer.arena, begin, begin + bytes};
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_ARENA_BYTES_H
