//===- addend.cuh - The sum that follows a kernel ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ADDEND_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ADDEND_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Rounded on its own, not with a product that it is a sum of.
inline __device__ float addedApart(float a, float b) { return __fadd_rn(a, b); }
inline __device__ double addedApart(double a, double b) {
  return __dadd_rn(a, b);
}

/// What is added to what a kernel makes, if there is data: to the bits of an
/// `add` after it.
struct Addend {
  Operand data = kNone;
  ElementType between = ElementType::f32; ///< what is made is rounded to it

  template <typename R>
  __device__ void addTo(R (&made)[kPack], std::int64_t first, int count) const {
    if (!data.data)
      return;
    R other[kPack];
    load(data, first, count, other);
    roundTo(between, made);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      made[i] = addedApart(other[i], made[i]);
  }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ADDEND_CUH
