//===- loss_scaler.cpp - Dynamic scale of an fp16 loss --------------------===//

#include "runtime/training/loss_scaler.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace mtplan::runtime {
namespace {

// The scale must fit single precision, because the scaled loss may be in single
// precision.
constexpr double kLargest = std::numeric_limits<float>::max();

constexpr std::array<std::pair<std::string_view, LossScalerSettings>, 5>
    kPresets = {{{"megatron", {4294967296.0, 1.0, 2.0, 0.5, 1000, 2}},
                 {"deepspeed", {65536.0, 1.0, 2.0, 0.5, 1000, 2}},
                 // torch.amp has no minimum scale. This preset uses the
                 // smallest normal number of single precision.
                 {"torch", {65536.0, 0x1p-126, 2.0, 0.5, 2000, 1}},
                 {"bmtrain", {1024.0, 1.0, 2.0, 0.5, 1024, 1}},
                 {"nvidia", {16777216.0, 1.0, 2.0, 0.5, 2000, 1}}}};

} // namespace

ScalerVerdict LossScaler::after(bool overflow) {
  if (!overflow) {
    if (++now.clean >= settings.window) {
      now.clean = 0;
      now.tolerance = settings.hysteresis;
      if (now.scale * settings.growth <= kLargest)
        now.scale *= settings.growth;
    }
    return ScalerVerdict::update;
  }
  now.clean = 0;
  if (--now.tolerance > 0)
    return ScalerVerdict::skip;
  if (now.scale <= settings.floor)
    return ScalerVerdict::exhausted;
  now.scale = std::max(now.scale * settings.backoff, settings.floor);
  return ScalerVerdict::skip;
}

std::string faultOf(const LossScalerSettings &settings) {
  if (!(settings.floor > 0.0))
    return "the loss scale's floor is " + std::to_string(settings.floor) +
           ", must be above 0";
  if (!(settings.initial >= settings.floor) || settings.initial > kLargest)
    return "the loss scale is " + std::to_string(settings.initial) +
           ", must be from its floor of " + std::to_string(settings.floor) +
           " to 2^127";
  if (!(settings.growth > 1.0))
    return "the loss scale grows by a factor of " +
           std::to_string(settings.growth) + ", must be more than 1";
  if (!(settings.backoff > 0.0 && settings.backoff < 1.0))
    return "the loss scale shrinks by a factor of " +
           std::to_string(settings.backoff) + ", must be between 0 and 1";
  if (settings.window < 1)
    return "the loss scale's window is " + std::to_string(settings.window) +
           " steps, must be at least 1";
  if (settings.hysteresis < 1)
    return "the loss scale's hysteresis is " +
           std::to_string(settings.hysteresis) + ", must be at least 1";
  return "";
}

LossScalerSettings fixedLossScale(double scale) {
  constexpr int kNever = std::numeric_limits<int>::max();
  LossScalerSettings settings;
  settings.initial = settings.floor = scale;
  settings.window = settings.hysteresis = kNever;
  return settings;
}

std::optional<LossScalerSettings> lossScalerNamed(std::string_view name) {
  for (const auto &[each, settings] : kPresets)
    if (each == name)
      return settings;
  return std::nullopt;
}

} // namespace mtplan::runtime
