//===- norm.cuh - Layer and RMS norms ---------------------------*- C++ -*-===//
//
// A block processes a row, and reads it again for each sum, because after the
// first time the row is in the L1 cache.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kNormThreads = 256;

/// The mean of a row (0 for an RMS norm), and the factor `scale` that
/// normalizes the row: 1 / sqrt(mean of (x - mean)^2 + epsilon).
template <typename R> struct Statistics { R mean, scale; };

template <typename R>
__device__ Statistics<R> statisticsOf(const Operand &from, std::int64_t start,
                                      std::int64_t width, R epsilon,
                                      bool centred) {
  R x[kPack];
  R mean = R(0);
  if (centred) {
    R sum = R(0);
    packsOfRow(width, [&](std::int64_t first, int count) {
      load(from, start + first, count, x);
      for (int i = 0; i < count; ++i)
        sum += x[i];
    });
    mean = sumOverBlock(sum) / static_cast<R>(width);
  }
  R squares = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      squares += (x[i] - mean) * (x[i] - mean);
  });
  squares = sumOverBlock(squares);
  return {mean, R(1) / sqrt(squares / static_cast<R>(width) + epsilon)};
}

/// Computes the layer norm of each row, or the RMS norm if `beta` has no data.
template <typename R>
__global__ void normalise(Operand from, Operand gamma, Operand beta, Result to,
                          std::int64_t width, R epsilon) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  const bool centred = beta.data != nullptr;
  const Statistics<R> row = statisticsOf(from, start, width, epsilon, centred);
  R x[kPack], scale[kPack], shift[kPack];
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    load(gamma, first, count, scale);
    for (int i = 0; i < kPack; ++i)
      x[i] = (x[i] - row.mean) * row.scale * scale[i];
    if (centred) {
      load(beta, first, count, shift);
      for (int i = 0; i < kPack; ++i)
        x[i] += shift[i];
    }
    store(to, start + first, count, x);
  });
}

/// Queues a layer norm, or an RMS norm if beta has no data, of `rows` rows.
template <typename R>
void norm(cudaStream_t stream, const Operand &from, const Operand &gamma,
          const Operand &beta, const Result &to, std::int64_t rows,
          std::int64_t width, double epsilon) {
  launch(stream, {rows, 1, threadsOfRow(width, kNormThreads)}, normalise<R>,
         from, gamma, beta, to, width, static_cast<R>(epsilon));
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH
