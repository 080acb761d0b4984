//===- gradient_factor.cuh - Clip and unscale, from one sum -----*- C++ -*-===//
//
// What runtime/training/gradient_factor.h decides on the host, to the bit: sums
// are taken in the same order, and nothing is there that could be contracted.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_GRADIENT_FACTOR_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_GRADIENT_FACTOR_CUH

#include "runtime/backend/step_numbers.h"
#include "runtime/cuda/device/long_sum.cuh"

namespace mtplan::runtime::cuda {

/// One thread. The decision may be the numbers' own.
static __global__ void decideFactor(const DeviceLongSum *sums,
                                    std::int64_t ranks, const StepNumbers *step,
                                    double *decision) {
  const NormRule rule = step->norm;
  if (!rule.applies) {
    decision[1] = 1.0;
    return;
  }
  DeviceLongSum all{0.0, 0.0};
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    all.add(sums[rank]);
  const double squares = all.value();
  const double norm = sqrt(squares) / rule.lossScale;
  const double clipped = rule.clip / (norm + 1e-6);
  double factor = 1.0 / rule.lossScale;
  if (rule.clip > 0.0 && clipped < 1.0)
    factor *= clipped;
  decision[0] = factor;
  decision[1] = isfinite(squares) ? 1.0 : 0.0;
}

/// \param sums      of the squares of each rank's gradients, on the device as
///                  all that follows
/// \param decision  the gradients' factor, and whether the step updates
inline void gradientFactor(cudaStream_t stream, const DeviceLongSum *sums,
                           std::int64_t ranks, const StepNumbers *step,
                           double *decision) {
  launch(stream, {1, 1, 1}, decideFactor, sums, ranks, step, decision);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_GRADIENT_FACTOR_CUH
