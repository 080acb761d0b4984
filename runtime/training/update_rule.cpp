//===- update_rule.cpp - Decides whether a step updates -------------------===//

#include "runtime/training/update_rule.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "runtime/training/gradient_factor.h"

namespace mtplan::runtime {
namespace {

std::string number(double value) {
  if (std::isnan(value)) // the sign of NaN is meaningless
    return "nan";
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

} // namespace

UpdateRule::UpdateRule(const UpdateRuleSettings &theSettings)
    : settings(theSettings) {
  if (settings.scaler)
    scaler.emplace(*settings.scaler);
}

UpdateRule::UpdateRule(const UpdateRuleSettings &theSettings,
                       const UpdateRuleState &state)
    : settings(theSettings), skipped(state.skipped) {
  if (settings.scaler)
    scaler.emplace(*settings.scaler, state.scaler);
}

UpdateRuleState UpdateRule::state() const {
  return {scaler ? scaler->state() : LossScalerState(), skipped};
}

UpdateDecision UpdateRule::decide(std::int64_t step, double squareSum) {
  const GradientFactor gradient =
      gradientFactorOf(squareSum, lossScale(), settings.clip);
  UpdateDecision decision{!gradient.overflow, gradient.norm, gradient.factor,
                          ""};
  const ScalerVerdict verdict =
      scaler ? scaler->after(gradient.overflow) : ScalerVerdict::update;
  if (decision.update) {
    skipped = 0;
    return decision;
  }
  ++skipped;
  const std::string what = "step " + std::to_string(step) +
                           ": the gradients' norm is " + number(gradient.norm);
  if (verdict == ScalerVerdict::exhausted)
    decision.stop = what + " although the loss scale is at its floor of " +
                    number(settings.scaler->floor);
  else if (!scaler && !settings.skipNonFinite)
    decision.stop = what;
  else if (skipped >= settings.mostSkipped)
    decision.stop = what + ", the last of " + std::to_string(skipped) +
                    " steps in a row without an update; at most " +
                    std::to_string(settings.mostSkipped - 1) +
                    " may be skipped";
  return decision;
}

} // namespace mtplan::runtime
