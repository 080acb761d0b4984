//===- transpose.h - Transposition of a matrix ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_TRANSPOSE_H
#define MTPLAN_RUNTIME_CPU_TRANSPOSE_H

#include <cstdint>

#include "runtime/plan/plan.h"

namespace mtplan::runtime::cpu {

/// Computes to[column, row] = from[row, column] for elements of 2 or 4 bytes.
/// Rows of `from` are `stride` elements apart; those of `to` are dense.
void transpose(ElementType type, const void *from, std::int64_t stride,
               std::int64_t rows, std::int64_t columns, void *to);

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_TRANSPOSE_H
