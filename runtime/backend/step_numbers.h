//===- step_numbers.h - Per-step numbers that kernels read ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H
#define MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H

#include <cstddef>
#include <cstdint>

namespace mtplan::runtime {

/// Holds the scalar inputs of a parameter update, which are equal on all ranks.
struct UpdateNumbers {
  double learningRate = 0.0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0.0; ///< applies to operators with `decay`
  std::int64_t step = 1;    ///< counts updates from 1, for AdamW
  /// Multiplies the gradients: 1 / loss scale, times the clipping factor.
  double gradientFactor = 1.0;
  /// Is 0 if the gradients overflowed and the step is skipped, otherwise 1. On
  /// a device the kernel `gradient_factor` writes this and `gradientFactor`.
  double updates = 1.0;
};
static_assert(offsetof(UpdateNumbers, updates) ==
              offsetof(UpdateNumbers, gradientFactor) + sizeof(double));

/// Determines `gradientFactor` and `updates` from the norm of the gradients.
struct NormRule {
  bool applies = false; ///< false: the caller sets both numbers
  double lossScale = 1.0;
  double clip = 0.0; ///< largest norm; 0: no clipping
};

/// Holds all numbers that may differ between steps. Kernels read them from
/// memory, so that work recorded for one step can be replayed for the next.
struct StepNumbers {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  bool drops = true; ///< false: no dropout, for validation
  UpdateNumbers update;
  NormRule norm;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STEP_NUMBERS_H
