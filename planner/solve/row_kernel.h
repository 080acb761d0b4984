//===- row_kernel.h - The inner loop of elimination -------------*- C++ -*-===//
//
// result[b] = min over v of scalars[v] + sum over i of rows[i][v][b]
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ROW_KERNEL_H
#define MTPLAN_PLANNER_SOLVE_ROW_KERNEL_H

#include <cstddef>

namespace mtplan::planner {

/// Rows of consecutive v lie `length` apart.
using RowKernel = void (*)(double *result, const double *const *rows,
                           std::size_t rowCount, const double *scalars,
                           std::size_t values, std::size_t length);

/// Returns the fastest kernel for this many row inputs on this processor. All
/// give the same bits: sums are formed in the order of the inputs, scalar
/// first.
RowKernel rowKernel(std::size_t rowCount);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ROW_KERNEL_H
