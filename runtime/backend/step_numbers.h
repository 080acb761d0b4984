//===- step_numbers.h - What kernels read of a step -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H
#define MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H

#include <cstddef>
#include <cstdint>

namespace mtplan::runtime {

/// What an update needs beside the gradient; the same on all ranks.
struct UpdateNumbers {
  double learningRate = 0.0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0.0; ///< where the operator says `decay`
  std::int64_t step = 1;    ///< from 1, for the corrections of the moments
  /// What gradients are multiplied by: one over the loss scale, and the clip.
  double gradientFactor = 1.0;
  /// 0: the step updates nothing, after an overflow. `gradient_factor` writes
  /// both where a device decides.
  double updates = 1.0;
};
static_assert(offsetof(UpdateNumbers, updates) ==
              offsetof(UpdateNumbers, gradientFactor) + sizeof(double));

/// How they come of the gradients' norm.
struct NormRule {
  bool applies = false; ///< else they are given
  double lossScale = 1.0;
  double clip = 0.0; ///< largest norm; 0: any
};

/// What differs from step to step. Lies where kernels find it, so that what was
/// queued for one step serves for the next.
struct StepNumbers {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  bool drops = true; ///< false: masks keep all, as in validation
  UpdateNumbers update;
  NormRule norm;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H
