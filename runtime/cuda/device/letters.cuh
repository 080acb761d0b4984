//===- letters.cuh - Einsums that are no products of matrices ---*- C++ -*-===//
//
// Each number of the result by itself: where both operands have the result's
// last letter (a gate's scale, "bsh,bs->bsh", and its gradients) there are no
// rows to multiply with columns, and memory is what is waited for.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_LETTERS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_LETTERS_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Nested loops over letters, the last one innermost, and how far the operands
/// move on in each.
struct Letters {
  int count = 0;
  std::int64_t sizes[kMostDims], left[kMostDims], right[kMostDims];

  __host__ __device__ std::int64_t steps() const {
    std::int64_t all = 1;
    for (int i = 0; i < count; ++i)
      all *= sizes[i];
    return all;
  }
  __device__ void moveTo(std::int64_t step, std::int64_t &a,
                         std::int64_t &b) const {
    for (int i = count - 1; i >= 0; --i) {
      a += step % sizes[i] * left[i];
      b += step % sizes[i] * right[i];
      step /= sizes[i];
    }
  }
};

/// Lanes share out the terms of one sum: all of a warp, or one.
template <typename R, int Lanes>
__global__ void sumTerms(Operand left, Operand right, Operand bias, Result to,
                         std::int64_t results, std::int64_t columns,
                         Letters kept, Letters summed) {
  const std::int64_t thread =
      std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t result = thread / Lanes;
  // A warp ends as one.
  if (result >= results)
    return;
  std::int64_t a = 0, b = 0;
  kept.moveTo(result, a, b);
  R sum = R(0);
  for (std::int64_t term = thread % Lanes; term < summed.steps();
       term += Lanes) {
    std::int64_t i = a, j = b;
    summed.moveTo(term, i, j);
    sum += loadOne<R>(left, i) * loadOne<R>(right, j);
  }
#pragma unroll
  for (int apart = Lanes / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, apart);
  if (thread % Lanes != 0)
    return;
  if (bias.data)
    sum += loadOne<R>(bias, result % columns);
  storeOne(to, result, sum);
}

/// \param bias  by the last letter; without data: none
template <typename R>
void letterSum(cudaStream_t stream, const Operand &left, const Operand &right,
               const Operand &bias, const Result &to, const Letters &kept,
               const Letters &summed) {
  constexpr unsigned kThreads = 256;
  const std::int64_t results = kept.steps();
  const std::int64_t columns = kept.count > 0 ? kept.sizes[kept.count - 1] : 1;
  if (summed.steps() >= kWarp)
    launch(stream, {blocksFor(results * kWarp, kThreads), 1, kThreads},
           sumTerms<R, kWarp>, left, right, bias, to, results, columns, kept,
           summed);
  else
    launch(stream, {blocksFor(results, kThreads), 1, kThreads}, sumTerms<R, 1>,
           left, right, bias, to, results, columns, kept, summed);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_LETTERS_CUH
