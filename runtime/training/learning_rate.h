//===- learning_rate.h - The learning rate of each step ---------*- C++ -*-===//
//
// The schedules of Megatron-LM (megatron/core/optimizer_param_scheduler.py).
// Steps count from 1, warm-up is inclusive and linear, the decay ends at an
// absolute step and `floor` holds behind it; a "step" may as well be a sample.
// BMTrain's Noam schedule of rate r is inverseSquareRoot with a peak of
// r / sqrt(warmup).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_LEARNING_RATE_H
#define MTPLAN_RUNTIME_TRAINING_LEARNING_RATE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtplan::runtime {

enum class Decay {
  constant,
  linear,
  cosine,
  inverseSquareRoot, ///< peak sqrt(warmup / step), not below the floor
  wsd                ///< warm-up, stable, decay (Hu et al. 2024)
};

/// How WSD comes down; r goes from 0 to 1.
enum class Annealing {
  linear,      ///< 1 - r
  cosine,      ///< (1 + cos(pi r)) / 2
  exponential, ///< 2 0.5^r - 1
  minusSqrt    ///< 1 - sqrt(r)
};

struct LearningRate {
  Decay decay = Decay::constant;
  double peak = 1e-3;
  double floor = 0.0; ///< <= peak
  double start = 0.0; ///< where warm-up begins, <= peak
  std::int64_t warmup = 0;
  /// Step at which the decay ends, > warmup; unread if constant.
  std::int64_t end = 1;
  std::int64_t annealing = 0; ///< last steps of WSD that decay, <= end - warmup
  Annealing shape = Annealing::exponential;
};

/// \param step  from 1
double learningRateAt(const LearningRate &rate, std::int64_t step);

/// Returns what is wrong with the schedule, with both numbers, or "".
std::string faultOf(const LearningRate &rate);

/// "constant", "linear", "cosine", "inverse-square-root" or "wsd".
std::optional<Decay> decayNamed(std::string_view name);
/// "linear", "cosine", "exponential" or "minus-sqrt".
std::optional<Annealing> annealingNamed(std::string_view name);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_LEARNING_RATE_H
