//===- loss_scaler.h - Dynamic scale of an fp16 loss ------------*- C++ -*-===//
//
// Small gradients underflow in half precision. The loss is therefore scaled up
// before backward, and the gradients are scaled down before the update. If any
// gradient of any rank overflows, all ranks skip the step: parameters, moments
// and the optimizer's step count do not change. The state machine is that of
// Megatron-LM (core/optimizer/grad_scaler.py) and of DeepSpeed without
// consecutive hysteresis. With a hysteresis of 1, the state machine is also
// that of torch.amp and BMTrain.
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
  double floor = 1.0;                 ///< minimum scale, > 0
  double growth = 2.0, backoff = 0.5; ///< each multiplies the scale
  int window = 2000;  ///< consecutive steps without overflow until growth
  int hysteresis = 1; ///< overflows until the scale shrinks; reset by growth
};

/// Checkpoints store this state.
struct LossScalerState {
  double scale = 1.0;
  int clean = 0;     ///< steps since the last overflow or growth
  int tolerance = 1; ///< overflows left until the scale shrinks; may be < 0
  bool operator==(const LossScalerState &) const = default;
};

enum class ScalerVerdict {
  update,   ///< gradients are finite
  skip,     ///< overflow; the scale may shrink
  exhausted ///< overflow at the minimum scale
};

class LossScaler {
public:
  explicit LossScaler(const LossScalerSettings &theSettings)
      : settings(theSettings), now{theSettings.initial, 0,
                                   theSettings.hysteresis} {}
  LossScaler(const LossScalerSettings &theSettings,
             const LossScalerState &state)
      : settings(theSettings), now(state) {}

  /// Returns the scale of the next step's loss.
  double scale() const { return now.scale; }
  const LossScalerState &state() const { return now; }

  /// \param overflow  the same on all ranks
  ScalerVerdict after(bool overflow);

private:
  LossScalerSettings settings;
  LossScalerState now;
};

std::string faultOf(const LossScalerSettings &settings);

/// Returns settings with a constant scale. Overflowing steps are still skipped.
LossScalerSettings fixedLossScale(double scale);

/// Returns the defaults of "megatron", "deepspeed", "torch", "bmtrain" or
/// "nvidia" (the guide to mixed-precision training), and nothing for other
/// names. BMTrain has no default scale; 1024 is the initial scale in its
/// documentation.
std::optional<LossScalerSettings> lossScalerNamed(std::string_view name);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_TRAINING_LOSS_SCALER_H
