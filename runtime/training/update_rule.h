//===- update_rule.h - Whether and how a step updates -----------*- C++ -*-===//
//
// One number that all ranks have agreed on, the sum of the squares of all
// gradients, decides alike on all of them:
//
//   finite                        update, clipped and unscaled
//   not finite, dynamic scale     skip, and the scale shrinks; at its floor
//   stop not finite, no dynamic scale  stop, or skip if one asks for that
//
// and whatever the reason, too many steps skipped in a row stop the run: it
// would learn nothing any more.
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
  std::optional<LossScalerSettings> scaler; ///< of fp16
  double clip = 1.0;                        ///< largest norm; 0: any
  bool skipNonFinite = false; ///< without a scaler: skip in place of stop
  /// Steps in a row; a scale of 2^32 needs 32 to reach 1.
  int mostSkipped = 100;
};

/// What a checkpoint keeps.
struct UpdateRuleState {
  LossScalerState scaler; ///< unread without one
  int skipped = 0;        ///< in a row, up to now
  bool operator==(const UpdateRuleState &) const = default;
};

struct UpdateDecision {
  bool update = true;
  double norm = 0.0;   ///< of the unscaled gradients, before the clip
  double factor = 1.0; ///< of the gradients as they are
  std::string stop;    ///< why the run cannot go on; "" if it can
};

class UpdateRule {
public:
  explicit UpdateRule(const UpdateRuleSettings &settings);
  UpdateRule(const UpdateRuleSettings &settings, const UpdateRuleState &state);

  /// Of the next step's loss; 1 without a scaler.
  double lossScale() const { return scaler ? scaler->scale() : 1.0; }
  double clip() const { return settings.clip; }
  UpdateRuleState state() const;

  /// To be called once a step.
  /// \param squareSum  of the gradients of a loss scaled by lossScale()
  UpdateDecision decide(std::int64_t step, double squareSum);

private:
  UpdateRuleSettings settings;
  std::optional<LossScaler> scaler;
  int skipped = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_UPDATE_RULE_H
