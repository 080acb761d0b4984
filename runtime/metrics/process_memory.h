//===- process_memory.h - Memory of this process ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_METRICS_PROCESS_MEMORY_H
#define MTPLAN_RUNTIME_METRICS_PROCESS_MEMORY_H

#include <cstdint>

namespace mtplan::runtime {

/// Bytes in memory, all threads together; 0 where the system does not say.
struct ProcessMemory {
  std::int64_t now = 0;
  std::int64_t peak = 0; ///< since the process began
};

ProcessMemory processMemory();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_PROCESS_MEMORY_H
