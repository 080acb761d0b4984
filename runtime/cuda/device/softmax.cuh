//===- softmax.cuh - Softmax of rows ----------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_SOFTMAX_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_SOFTMAX_CUH

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kSoftmaxThreads = 256;

/// Computes the softmax of each row. A block processes a row. Each pass reads
/// the row again, which is cheap, because after the first pass the row is in
/// the L1 cache.
template <typename R>
__global__ void softmaxRows(Operand from, Result to, std::int64_t width) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  R x[kPack], largest = -R(INFINITY), sum = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      largest = Larger()(x[i], largest);
  });
  largest = overBlock(largest, Larger());
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      sum += exp(x[i] - largest);
  });
  const R share = R(1) / sumOverBlock(sum);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < kPack; ++i)
      x[i] = exp(x[i] - largest) * share;
    store(to, start + first, count, x);
  });
}

/// Computes dx = p * (above - sum(p * above)), where p is the softmax.
template <typename R>
__global__ void softmaxRowsGrad(Operand shares, Operand above, Result to,
                                std::int64_t width) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  R p[kPack], d[kPack], projection = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(shares, start + first, count, p);
    load(above, start + first, count, d);
    for (int i = 0; i < count; ++i)
      projection += p[i] * d[i];
  });
  projection = sumOverBlock(projection);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(shares, start + first, count, p);
    load(above, start + first, count, d);
    for (int i = 0; i < kPack; ++i)
      p[i] *= d[i] - projection;
    store(to, start + first, count, p);
  });
}

template <typename R>
void softmax(cudaStream_t stream, const Operand &from, const Result &to,
             std::int64_t rows, std::int64_t width) {
  launch(stream, {rows, 1, kSoftmaxThreads}, softmaxRows<R>, from, to, width);
}

/// Queues the gradient of a softmax; `shares` is the result of the softmax.
template <typename R>
void softmaxGrad(cudaStream_t stream, const Operand &shares,
                 const Operand &above, const Result &to, std::int64_t rows,
                 std::int64_t width) {
  launch(stream, {rows, 1, kSoftmaxThreads}, softmaxRowsGrad<R>, shares, above,
         to, width);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_SOFTMAX_CUH
