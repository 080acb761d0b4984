//===- learning_rate.cpp - The learning rate of each step -----------------===//

#include "runtime/training/learning_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <utility>

namespace mtplan::runtime {
namespace {

double halfCosine(double ratio) {
  return 0.5 * (std::cos(std::numbers::pi * ratio) + 1.0);
}

double annealed(Annealing shape, double ratio) {
  switch (shape) {
  case Annealing::linear:
    return 1.0 - ratio;
  case Annealing::cosine:
    return halfCosine(ratio);
  case Annealing::exponential:
    return 2.0 * std::pow(0.5, ratio) - 1.0;
  case Annealing::minusSqrt:
    break;
  }
  return 1.0 - std::sqrt(ratio);
}

double ratioOf(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// Returns (rate - floor) / (peak - floor) at a step.
double shareAt(const LearningRate &rate, std::int64_t step) {
  const double ratio = ratioOf(step - rate.warmup, rate.end - rate.warmup);
  switch (rate.decay) {
  case Decay::linear:
    return 1.0 - ratio;
  case Decay::cosine:
    return halfCosine(ratio);
  case Decay::wsd: {
    const std::int64_t since = step - (rate.end - rate.annealing);
    return since <= 0 ? 1.0
                      : annealed(rate.shape, ratioOf(since, rate.annealing));
  }
  case Decay::constant:
  case Decay::inverseSquareRoot:
    break;
  }
  return 1.0;
}

std::string rateText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

} // namespace

double learningRateAt(const LearningRate &rate, std::int64_t step) {
  if (rate.warmup > 0 && step <= rate.warmup)
    return rate.start + (rate.peak - rate.start) * ratioOf(step, rate.warmup);
  if (rate.decay == Decay::constant)
    return rate.peak;
  if (step > rate.end)
    return rate.floor;
  if (rate.decay == Decay::inverseSquareRoot) {
    const double warmup =
        static_cast<double>(std::max<std::int64_t>(rate.warmup, 1));
    const double now = static_cast<double>(std::max<std::int64_t>(step, 1));
    return std::max(rate.floor, rate.peak * std::sqrt(warmup) / std::sqrt(now));
  }
  return rate.floor + shareAt(rate, step) * (rate.peak - rate.floor);
}

std::string faultOf(const LearningRate &rate) {
  if (!(rate.floor >= 0.0) || !(rate.start >= 0.0) || !std::isfinite(rate.peak))
    return "a learning rate is negative, infinite or NaN: peak " +
           rateText(rate.peak) + ", floor " + rateText(rate.floor) +
           ", start " + rateText(rate.start);
  if (rate.floor > rate.peak)
    return "the learning rate's floor of " + rateText(rate.floor) +
           " is above its peak of " + rateText(rate.peak);
  if (rate.start > rate.peak)
    return "warm-up starts at " + rateText(rate.start) +
           ", above the peak of " + rateText(rate.peak);
  if (rate.warmup < 0)
    return "warm-up takes " + std::to_string(rate.warmup) +
           " steps, needs 0 or more";
  if (rate.decay != Decay::constant && rate.end <= rate.warmup)
    return "the decay ends at step " + std::to_string(rate.end) +
           ", warm-up takes " + std::to_string(rate.warmup) +
           ": it needs to end at " + std::to_string(rate.warmup + 1) +
           " or later";
  if (rate.decay == Decay::wsd &&
      (rate.annealing < 1 || rate.annealing > rate.end - rate.warmup))
    return "WSD decays over " + std::to_string(rate.annealing) +
           " steps, needs 1 to the " + std::to_string(rate.end - rate.warmup) +
           " between warm-up and end";
  return "";
}

std::optional<Decay> decayNamed(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Decay>, 5> kNames = {
      {{"constant", Decay::constant},
       {"linear", Decay::linear},
       {"cosine", Decay::cosine},
       {"inverse-square-root", Decay::inverseSquareRoot},
       {"wsd", Decay::wsd}}};
  for (const auto &[each, decay] : kNames)
    if (each == name)
      return decay;
  return std::nullopt;
}

std::optional<Annealing> annealingNamed(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Annealing>, 4> kNames = {
      {{"linear", Annealing::linear},
       {"cosine", Annealing::cosine},
       {"exponential", Annealing::exponential},
       {"minus-sqrt", Annealing::minusSqrt}}};
  for (const auto &[each, shape] : kNames)
    if (each == name)
      return shape;
  return std::nullopt;
}

} // namespace mtplan::runtime
