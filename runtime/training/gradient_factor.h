//===- gradient_factor.h - Clipping and unscaling of gradients --*- C++ -*-===//
//
// The sum of squares of the (scaled) gradients covers all ranks. Each element
// of the model counts once in any layout. The sum determines the norm, whether
// a gradient overflowed, and the factor that multiplies the gradients
// (Megatron-LM, core/optimizer/clip_grads.py).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_GRADIENT_FACTOR_H
#define MTPLAN_RUNTIME_TRAINING_GRADIENT_FACTOR_H

#include <cmath>

namespace mtplan::runtime {

struct GradientFactor {
  double norm = 0.0;     ///< norm of the unscaled gradients, before clipping
  double factor = 1.0;   ///< multiplies the scaled gradients
  bool overflow = false; ///< the sum is infinite or NaN
};

/// Returns the norm, and the factor that unscales and clips gradients.
/// \param squareSum  sum of squares of the scaled gradients
/// \param scale      loss scale; 1 if there is none
/// \param clip       largest norm; 0: no clipping
inline GradientFactor gradientFactorOf(double squareSum, double scale,
                                       double clip) {
  GradientFactor result;
  result.overflow = !std::isfinite(squareSum);
  result.norm = std::sqrt(squareSum) / scale;
  result.factor = 1.0 / scale;
  // With a NaN norm this comparison is false, and nothing is clipped. A NaN
  // norm counts as an overflow.
  if (const double clipped = clip / (result.norm + 1e-6);
      clip > 0.0 && clipped < 1.0)
    result.factor *= clipped;
  return result;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_GRADIENT_FACTOR_H
