//===- addend.cuh - Additions fused into a kernel ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ADDEND_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ADDEND_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Adds two numbers by an intrinsic, which keeps the compiler from contracting
/// the addition with a product.
inline __device__ float addedApart(float a, float b) { return __fadd_rn(a, b); }
inline __device__ double addedApart(double a, double b) {
  return __dadd_rn(a, b);
}

/// Describes a tensor that is added to the result of a kernel. There is no
/// addend if `data` is kNone. The bits equal those of a separate `add` kernel.
struct Addend {
  Operand data = kNone;
  ElementType between = ElementType::f32; ///< the result is rounded to this
                                          ///< type before the addition

  /// Returns whether `data` and `between` are bf16, or there is no addend.
  bool isBf16() const { return !data.data || areBf16(data.type, between); }

  /// \param held  a pack of `data`
  template <typename R>
  __device__ void addTo(R (&made)[kPack], const HeldPack<R> &held) const {
    if (!data.data)
      return;
    R other[kPack];
    held.widen(data.type, other);
    roundTo(between, made);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      made[i] = addedApart(other[i], made[i]);
  }
};

/// Adds `row` to each row of `from`. A thread processes a pack.
template <typename R>
__global__ void addRowToEach(Operand from, Operand row, std::int64_t width,
                             Result to, std::int64_t elements) {
  const std::int64_t first = threadOfGrid() * kPack;
  if (first >= elements)
    return;
  const int count = packAt(first, elements);
  R values[kPack];
  load(from, first, count, values);
#pragma unroll
  for (int e = 0; e < kPack; ++e)
    if (e < count)
      values[e] += loadOne<R>(row, (first + e) % width);
  store(to, first, count, values);
}

template <typename R>
void addRow(cudaStream_t stream, const Operand &from, const Operand &row,
            std::int64_t width, const Result &to, std::int64_t elements) {
  launch(stream, gridOf(blocksFor(elements, kPack)), addRowToEach<R>, from, row,
         width, to, elements);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ADDEND_CUH
