//===- kept_sums.h - What forward keeps of rows, as cuDNN has it *- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_KEPT_SUMS_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_KEPT_SUMS_H

#include <cstdint>

#include <cuda_runtime_api.h>

namespace mtplan::runtime::cuda {

/// [batch, rows, columns] to [batch, columns, rows].
void turn(cudaStream_t stream, const float *from, float *to, std::int64_t batch,
          std::int64_t rows, std::int64_t columns);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_KEPT_SUMS_H
