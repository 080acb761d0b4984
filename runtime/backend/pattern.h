//===- pattern.h - Numbers to measure kernels on ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_PATTERN_H
#define MTPLAN_RUNTIME_BACKEND_PATTERN_H

#include "runtime/backend/memory.h"
#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Small numbers of both signs, few of them zeros, in pieces that are long
/// beside what an upload takes to begin; integers are from 0 to 511. (On zeros
/// a device draws less power, and is faster than in a step.)
class Pattern {
public:
  /// \param theMemory  where it is uploaded to
  /// \param bytes      of the longest tensor: of that or of 8 MiB is a piece
  Pattern(Memory &theMemory, ElementType type, std::int64_t bytes);

  void fill(void *to, std::int64_t bytes);

private:
  Memory &memory;
  const std::int64_t length; ///< bytes
  const Allocation piece;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_PATTERN_H
