//===- pattern.h - Data for measuring kernels -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_PATTERN_H
#define MTPLAN_RUNTIME_BACKEND_PATTERN_H

#include "runtime/backend/memory.h"
#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Small numbers of both signs, few of them zero, in parts that are long beside
/// the latency of an upload; integers are 0 to 511. (On zeros a device draws
/// less power and is faster than in a real step.)
class Pattern {
public:
  /// \param theMemory  where the data are uploaded to
  /// \param bytes      of the longest tensor; a part has this size or 8 MiB
  Pattern(Memory &theMemory, ElementType type, std::int64_t bytes);

  void fill(void *to, std::int64_t bytes);

private:
  Memory &memory;
  const std::int64_t length; ///< bytes
  const Allocation piece;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_PATTERN_H
