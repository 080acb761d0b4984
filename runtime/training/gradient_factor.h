//===- gradient_factor.h - Clip and unscale, from one sum -------*- C++ -*-===//
//
// The squares of all gradients, each element once whatever its layout, are
// summed over all ranks as they are, scaled by the loss scale. That one number
// says whether anything overflowed, the norm, and what gradients are to be
// multiplied by (Megatron-LM, core/optimizer/clip_grads.py).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_GRADIENT_FACTOR_H
#define MTPLAN_RUNTIME_TRAINING_GRADIENT_FACTOR_H

#include <cmath>

namespace mtplan::runtime {

struct GradientFactor {
  double norm = 0.0;     ///< of the unscaled gradients, before the clip
  double factor = 1.0;   ///< of the gradients as they are
  bool overflow = false; ///< something is infinite or no number
};

/// \param squareSum  of the scaled gradients
/// \param scale      of the loss; 1 if none
/// \param clip       largest norm; 0 for any
inline GradientFactor gradientFactorOf(double squareSum, double scale,
                                       double clip) {
  GradientFactor result;
  result.overflow = !std::isfinite(squareSum);
  result.norm = std::sqrt(squareSum) / scale;
  result.factor = 1.0 / scale;
  // Comparing so, a norm that is no number clips nothing: it is an overflow.
  if (const double clipped = clip / (result.norm + 1e-6);
      clip > 0.0 && clipped < 1.0)
    result.factor *= clipped;
  return result;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_GRADIENT_FACTOR_H
