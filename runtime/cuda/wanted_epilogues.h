//===- wanted_epilogues.h - What products may do beside ---------*- C++ -*-===//
//
// Which is faster, a kernel of cuBLASLt that does two things or two kernels,
// depends on the device and the version: a person may compare.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_WANTED_EPILOGUES_H
#define MTPLAN_RUNTIME_CUDA_WANTED_EPILOGUES_H

#include "runtime/backend/matrix_shape.h"

namespace mtplan::runtime::cuda {

/// By MTPLAN_EPILOGUES, of which of "gelu" (and its derivative) and "sums" (of
/// an operand, a bias's gradient) are said, with a comma between, or "0" for
/// none; both where it is not set. Biases and addends are always wanted.
/// \throws std::runtime_error for other words
bool isWanted(const MatrixShape &shape);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_WANTED_EPILOGUES_H
