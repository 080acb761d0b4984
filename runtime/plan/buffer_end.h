//===- buffer_end.h - Where a buffer ends -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_BUFFER_END_H
#define MTPLAN_RUNTIME_PLAN_BUFFER_END_H

#include <cstdint>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Of its last entry and slot, in bytes of the arena.
inline std::int64_t endOf(const Buffer &buffer) {
  return buffer.offset + (buffer.entries - 1) * buffer.entryStride +
         (buffer.slots - 1) * buffer.slotStride + buffer.size;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_BUFFER_END_H
