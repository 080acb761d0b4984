//===- letter_loops.h - An einsum as loops over its letters -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_LETTER_LOOPS_H
#define MTPLAN_RUNTIME_BACKEND_LETTER_LOOPS_H

#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Nested loops, the last one innermost, and elements by which the operands
/// move on in each.
struct LetterLoops {
  std::vector<std::int64_t> sizes, left, right;
};

/// Those over the result's letters, and within them those that are summed.
struct LetterSums {
  LetterLoops kept, summed;

  explicit LetterSums(const KernelSpec &spec);
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_LETTER_LOOPS_H
