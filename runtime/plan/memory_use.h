//===- memory_use.h - Bytes in a stage's buffers ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_MEMORY_USE_H
#define MTPLAN_RUNTIME_PLAN_MEMORY_USE_H

#include <cstdint>
#include <map>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns the bytes of each memory class that lie in some buffer: an arena
/// without alignment gaps. O(n log n) in entries and slots of all buffers.
std::map<MemoryClass, std::int64_t> bytesInBuffers(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_MEMORY_USE_H
