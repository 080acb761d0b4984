//===- long_sum.cuh - A sum in twice double precision -----------*- C++ -*-===//
//
// What runtime/backend/long_sum.h does, on a device. The square is rounded by
// a call of its own: a compiler that fuses it with the sum would take away what
// the sum is said to have lost.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_LONG_SUM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_LONG_SUM_CUH

#include "runtime/cuda/device/launch.cuh"

namespace mtplan::runtime::cuda {

/// Without initial values, so that it may be shared by a block.
struct DeviceLongSum {
  double sum, lost;

  __device__ void add(double value) {
    const double next = sum + value, taken = next - sum;
    lost += (sum - (next - taken)) + (value - taken);
    sum = next;
  }
  __device__ void addSquare(double value) {
    const double square = __dmul_rn(value, value);
    lost += fma(value, value, -square);
    add(square);
  }
  /// In double nothing of it is lost.
  __device__ void addSquare(float value) {
    add(__dmul_rn(static_cast<double>(value), static_cast<double>(value)));
  }
  __device__ void add(const DeviceLongSum &other) {
    add(other.sum);
    lost += other.lost;
  }
  /// Of what is not finite, what the sum is.
  __device__ double value() const { return isfinite(sum) ? sum + lost : sum; }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_LONG_SUM_CUH
