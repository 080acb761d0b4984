//===- step_numbers.h - Per-step numbers that kernels read ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H
#define MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H

#include <cstddef>
#include <cstdint>

namespace mtplan::runtime {

/// Inputs of an update beside the gradient; the same on all ranks.
struct UpdateNumbers {
  double learningRate = 0.0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0.0; ///< where the operator has `decay`
  std::int64_t step = 1;    ///< from 1, for bias correction of the moments
  /// Factor of the gradients: one over the loss scale, times the clip.
  double gradientFactor = 1.0;
  /// 0 means that the step updates nothing after an overflow. Where a device
  /// decides, `gradient_factor` writes both.
  double updates = 1.0;
};
static_assert(offsetof(UpdateNumbers, updates) ==
              offsetof(UpdateNumbers, gradientFactor) + sizeof(double));

/// How the norm of the gradients determines these numbers.
struct NormRule {
  bool applies = false; ///< otherwise they are given
  double lossScale = 1.0;
  double clip = 0.0; ///< largest norm; 0: no limit
};

/// Everything that differs from step to step. It lies in memory that kernels
/// read, so that work queued for one step serves the next.
struct StepNumbers {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  bool drops = true; ///< false: dropout keeps all elements, as in validation
  UpdateNumbers update;
  NormRule norm;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H
