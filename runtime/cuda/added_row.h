//===- added_row.h - A vector beside every row ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_ADDED_ROW_H
#define MTPLAN_RUNTIME_CUDA_ADDED_ROW_H

#include <cstdint>

#include <cuda_runtime_api.h>

#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

/// to[rows, width] = from[rows, width] + row[width]; `to` may be `from`.
/// \param elements  rows times width
/// \param doubly    in double precision
void addRow(cudaStream_t stream, Operand from, Operand row, std::int64_t width,
            Result to, std::int64_t elements, bool doubly);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_ADDED_ROW_H
