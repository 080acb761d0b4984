//===- memory_use.h - What a stage's buffers take ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_MEMORY_USE_H
#define MTPLAN_RUNTIME_PLAN_MEMORY_USE_H

#include <cstdint>
#include <map>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Bytes of each memory class that lie in some buffer: an arena without what is
/// left out between buffers for the sake of alignment.
/// O(n log n) in entries and slots of all buffers.
std::map<MemoryClass, std::int64_t> bytesInBuffers(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_MEMORY_USE_H
