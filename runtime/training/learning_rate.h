//===- learning_rate.h - The learning rate of each step ---------*- C++ -*-===//
//
// These are the schedules of Megatron-LM
// (megatron/core/optimizer_param_scheduler.py). Steps count from 1; callers may
// pass numbers of samples instead of steps. Warm-up is linear, and its last
// step has the peak rate. The decay ends at step `end`, which counts warm-up
// steps too. Later steps have the minimum rate `floor`, unless the rate is
// constant. BMTrain's Noam schedule of rate r is inverseSquareRoot with a peak
// of r / sqrt(warmup).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_LEARNING_RATE_H
#define MTPLAN_RUNTIME_TRAINING_LEARNING_RATE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtplan::runtime {

/// Names the schedule of the rate after warm-up.
enum class Decay {
  constant,
  linear,
  cosine,
  inverseSquareRoot, ///< max(floor, peak sqrt(max(warmup, 1) / step))
  wsd                ///< warm-up, stable, decay (Hu et al. 2024)
};

/// Names the shape of WSD's decay. The ratio r goes from 0 to 1.
enum class Annealing {
  linear,      ///< 1 - r
  cosine,      ///< (1 + cos(pi r)) / 2
  exponential, ///< 2 0.5^r - 1
  minusSqrt    ///< 1 - sqrt(r)
};

struct LearningRate {
  Decay decay = Decay::constant;
  double peak = 1e-3;
  double floor = 0.0;      ///< minimum rate, <= peak
  double start = 0.0;      ///< rate before warm-up, <= peak
  std::int64_t warmup = 0; ///< steps
  /// The decay ends at this step, > warmup. A constant rate ignores `end`.
  std::int64_t end = 1;
  std::int64_t annealing = 0; ///< steps of WSD's decay, <= end - warmup
  Annealing shape = Annealing::exponential;
};

/// \param step  counted from 1
double learningRateAt(const LearningRate &rate, std::int64_t step);

/// Returns an error with the contradicting numbers if the schedule is invalid,
/// else "".
std::string faultOf(const LearningRate &rate);

/// Returns nothing for names other than "constant", "linear", "cosine",
/// "inverse-square-root" and "wsd".
std::optional<Decay> decayNamed(std::string_view name);
/// Returns nothing for names other than "linear", "cosine", "exponential" and
/// "minus-sqrt".
std::optional<Annealing> annealingNamed(std::string_view name);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_LEARNING_RATE_H
