//===- loss_scaler.h - Dynamic scale of an fp16 loss ------------*- C++ -*-===//
//
// Half precision has no room for small gradients, so the loss is scaled up
// before backward and the gradients down before the update. If any gradient of
// any rank overflows, all ranks skip the step: parameters, moments and the
// optimizer's step count stay as they are. The state machine is the one of
// Megatron-LM (core/optimizer/grad_scaler.py) and DeepSpeed without consecutive
// hysteresis; with a hysteresis of 1 it is that of torch.amp and BMTrain.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_TRAINING_LOSS_SCALER_H
#define MTPLAN_RUNTIME_TRAINING_LOSS_SCALER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtplan::runtime {

struct LossScalerSettings {
  double initial = 65536.0;
  double floor = 1.0; ///< > 0
  double growth = 2.0, backoff = 0.5;
  int window = 2000;  ///< clean steps in a row before the scale grows
  int hysteresis = 1; ///< overflows until it shrinks; refilled when it grows
};

/// What a checkpoint keeps.
struct LossScalerState {
  double scale = 1.0;
  int clean = 0;     ///< steps without overflow since the last with, or growth
  int tolerance = 1; ///< what is left of the hysteresis; may go below 0
  bool operator==(const LossScalerState &) const = default;
};

enum class ScalerVerdict {
  update,   ///< gradients are finite
  skip,     ///< they are not; the next step may do better
  exhausted ///< they are not, although the scale was at its floor already
};

class LossScaler {
public:
  explicit LossScaler(const LossScalerSettings &theSettings)
      : settings(theSettings), now{theSettings.initial, 0,
                                   theSettings.hysteresis} {}
  LossScaler(const LossScalerSettings &theSettings,
             const LossScalerState &state)
      : settings(theSettings), now(state) {}

  /// Of the next step's loss.
  double scale() const { return now.scale; }
  const LossScalerState &state() const { return now; }

  /// \param overflow  agreed by all ranks
  ScalerVerdict after(bool overflow);

private:
  LossScalerSettings settings;
  LossScalerState now;
};

/// What is wrong with them; "" if nothing.
std::string faultOf(const LossScalerSettings &settings);

/// A scale that stays: steps that overflow are skipped all the same.
LossScalerSettings fixedLossScale(double scale);

/// Of "megatron", "deepspeed", "torch", "bmtrain" (which has no default scale;
/// its documentation's example begins at 1024) or "nvidia" (the training guide
/// on mixed precision).
std::optional<LossScalerSettings> lossScalerNamed(std::string_view name);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_LOSS_SCALER_H
