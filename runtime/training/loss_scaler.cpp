//===- loss_scaler.cpp - Dynamic scale of an fp16 loss --------------------===//

#include "runtime/training/loss_scaler.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace mtplan::runtime {
namespace {

// The scale must fit single precision, because the scaled loss may have that
// type.
constexpr double kLargest = std::numeric_limits<float>::max();

constexpr std::array<std::pair<std::string_view, LossScalerSettings>, 5>
    kPresets = {{{"megatron", {4294967296.0, 1.0, 2.0, 0.5, 1000, 2}},
                 {"deepspeed", {65536.0, 1.0, 2.0, 0.5, 1000, 2}},
                 // torch has no minimum, so the smallest normal number of
                 // single precision stands for it.
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
    return "a loss scale's floor of " + std::to_string(settings.floor) +
           ", needs to be above 0";
  if (!(settings.initial >= settings.floor) || settings.initial > kLargest)
    return "a loss scale of " + std::to_string(settings.initial) +
           ", needs to be from its floor of " + std::to_string(settings.floor) +
           " to 2^127";
  if (!(settings.growth > 1.0))
    return "a loss scale that grows by " + std::to_string(settings.growth) +
           ", needs more than 1";
  if (!(settings.backoff > 0.0 && settings.backoff < 1.0))
    return "a loss scale that shrinks by " + std::to_string(settings.backoff) +
           ", needs between 0 and 1";
  if (settings.window < 1)
    return "a loss scale's window of " + std::to_string(settings.window) +
           " steps, needs at least 1";
  if (settings.hysteresis < 1)
    return "a loss scale's hysteresis of " +
           std::to_string(settings.hysteresis) + ", needs at least 1";
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
