//===- letter_loops.h - An einsum as loops over its letters -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_LETTER_LOOPS_H
#define MTPLAN_RUNTIME_BACKEND_LETTER_LOOPS_H

#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Nested loops, the last one innermost, with the elements by which the
/// operands advance in each.
struct LetterLoops {
  std::vector<std::int64_t> sizes, left, right;
};

/// The loops over the result's letters, and within them the summed ones.
struct LetterSums {
  LetterLoops kept, summed;

  explicit LetterSums(const KernelSpec &spec);
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_LETTER_LOOPS_H
