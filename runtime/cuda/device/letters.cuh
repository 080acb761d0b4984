//===- letters.cuh - Einsums that are not matrix products -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_LETTERS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_LETTERS_CUH

#include "runtime/cuda/device/block_sum.cuh"

namespace mtplan::runtime::cuda {

/// Describes nested loops over letters of an einsum, with the strides of both
/// operands in elements. The last loop is the innermost.
struct Letters {
  int count = 0;
  std::int64_t sizes[kMostDims], left[kMostDims], right[kMostDims];

  __host__ __device__ std::int64_t steps() const {
    std::int64_t all = 1;
    for (int i = 0; i < count; ++i)
      all *= sizes[i];
    return all;
  }
  /// Adds the offsets of iteration `step` to the operands' offsets a and b.
  __device__ void moveTo(std::int64_t step, std::int64_t &a,
                         std::int64_t &b) const {
    for (int i = count - 1; i >= 0; --i) {
      a += step % sizes[i] * left[i];
      b += step % sizes[i] * right[i];
      step /= sizes[i];
    }
  }
};

/// Computes an einsum that is no matrix product, because its result is a scalar
/// or both operands have the result's last letter (like "bsh,bsh->bs"). `Lanes`
/// lanes compute one element of the result: a full warp, or one lane.
template <typename R, int Lanes>
__global__ void sumTerms(Operand left, Operand right, Operand bias, Result to,
                         std::int64_t results, std::int64_t columns,
                         Letters kept, Letters summed) {
  const std::int64_t thread = threadOfGrid(), result = thread / Lanes;
  // All lanes that share a sum return together, so overWarp() is safe below.
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
  sum = overWarp<Lanes>(sum, Plus());
  if (thread % Lanes != 0)
    return;
  if (bias.data)
    sum += loadOne<R>(bias, result % columns);
  storeOne(to, result, sum);
}

/// \param bias  has an element per value of the result's last letter, or no
/// data
template <typename R>
void letterSum(cudaStream_t stream, const Operand &left, const Operand &right,
               const Operand &bias, const Result &to, const Letters &kept,
               const Letters &summed) {
  const std::int64_t results = kept.steps();
  const std::int64_t columns = kept.count > 0 ? kept.sizes[kept.count - 1] : 1;
  if (summed.steps() >= kWarp)
    launch(stream, gridOf(results * kWarp), sumTerms<R, kWarp>, left, right,
           bias, to, results, columns, kept, summed);
  else
    launch(stream, gridOf(results), sumTerms<R, 1>, left, right, bias, to,
           results, columns, kept, summed);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_LETTERS_CUH
