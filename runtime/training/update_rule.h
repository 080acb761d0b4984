//===- update_rule.h - Decides whether a step updates -----------*- C++ -*-===//
//
// The decision depends only on the global sum of squared gradients. All ranks
// therefore decide the same:
//
//   finite                        update, clipped and unscaled
//   not finite, with a scaler     skip; after `hysteresis` overflows, shrink
//                                 the scale, or stop at the minimum scale
//   not finite, without a scaler  stop, or skip if skipNonFinite
//
// The run also stops after too many consecutive skipped steps, because the
// model no longer learns.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_UPDATE_RULE_H
#define MTPLAN_RUNTIME_TRAINING_UPDATE_RULE_H

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/training/loss_scaler.h"

namespace mtplan::runtime {

struct UpdateRuleSettings {
  std::optional<LossScalerSettings> scaler; ///< set when training in fp16
  double clip = 1.0;                        ///< largest norm; 0: no clipping
  bool skipNonFinite = false; ///< without a scaler: skip instead of stopping
  /// This many consecutive skipped steps stop the run. The limit must allow the
  /// scale to shrink: a scale of 2^32 reaches 1 after 32 skipped steps.
  int mostSkipped = 100;
};

/// Checkpoints store this state.
struct UpdateRuleState {
  LossScalerState scaler; ///< ignored without a scaler
  int skipped = 0;        ///< consecutive skipped steps
  bool operator==(const UpdateRuleState &) const = default;
};

struct UpdateDecision {
  bool update = true;
  double norm = 0.0;   ///< norm of the unscaled gradients, before clipping
  double factor = 1.0; ///< multiplies the scaled gradients
  std::string stop;    ///< why the run must stop; "" if it continues
};

/// Decides about each step, and holds the loss scale.
class UpdateRule {
public:
  explicit UpdateRule(const UpdateRuleSettings &settings);
  UpdateRule(const UpdateRuleSettings &settings, const UpdateRuleState &state);

  /// Returns the scale of the next step's loss; 1 without a scaler.
  double lossScale() const { return scaler ? scaler->scale() : 1.0; }
  double clip() const { return settings.clip; }
  UpdateRuleState state() const;

  /// Returns the decision about a step. Must be called once per step.
  /// \param squareSum  sum of squared gradients of the loss scaled by
  /// lossScale()
  UpdateDecision decide(std::int64_t step, double squareSum);

private:
  UpdateRuleSettings settings;
  std::optional<LossScaler> scaler;
  int skipped = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_UPDATE_RULE_H
