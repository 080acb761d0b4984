//===- buffer_end.h - The end of a buffer -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_BUFFER_END_H
#define MTPLAN_RUNTIME_PLAN_BUFFER_END_H

#include <cstdint>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns one past the buffer's last byte in the arena, over all entries and
/// slots.
inline std::int64_t endOf(const Buffer &buffer) {
  return buffer.offset + (buffer.entries - 1) * buffer.entryStride +
         (buffer.slots - 1) * buffer.slotStride + buffer.size;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_BUFFER_END_H
