//===- fit_machine.h - A machine from measurements --------------*- C++ -*-===//
//
// Fits the figures of a machine to measurements. The fit minimises the sum of
// squares of log(predicted time / measured time), so that an error of 1 %
// counts equally for a microsecond and for a second. The figures of the device
// and of the network are fitted separately. Values have the units of the
// machine file: us, GB/s or a share.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_FIT_MACHINE_H
#define MTPLAN_PLANNER_FIT_FIT_MACHINE_H

#include <optional>
#include <string>
#include <vector>

#include "planner/fit/measurements_json.h"

namespace mtplan::planner {

struct FittedFigure {
  Figure figure;
  double value = 0.0; ///< in the file's unit, rounded to 4 digits
  /// Holds the standard deviation of `value` (LeastSquares::deviations).
  double deviation = 0.0;
  bool atBound = false;
};

struct FitResidual {
  MeasuredKind kind{};
  int rows = 0;
  double rms = 0.0;   ///< root mean square of predicted / measured - 1
  double worst = 0.0; ///< error of largest magnitude, with its sign
  std::string worstPointer, worstRow;
};

struct MachineFit {
  Machine machine;
  std::vector<FittedFigure> figures;  ///< in the order of Measurements::figures
  std::vector<FitResidual> residuals; ///< one per measured kind
};

/// Returns the fit, which does not depend on the order of the rows. If the
/// measurements do not determine a figure, returns nothing and adds to `errors`
/// a line that names the figure and the measurements that would determine the
/// figure.
std::optional<MachineFit> fitMachine(Measurements measured,
                                     std::vector<std::string> &errors);

/// These are the keys of a device and of a network level that can be fitted.
/// The keys have the order of FigureKind: those of a device start at `launch`,
/// those of a level at `levelBandwidth`.
inline constexpr const char *kFittedDeviceKeys[] = {"launch_us",
                                                    "bandwidth_efficiency",
                                                    "elementwise_efficiency",
                                                    "gemm_efficiency",
                                                    "gemm_efficiency_fp32",
                                                    "gemm_efficiency_fp16",
                                                    "gemm_efficiency_bf16",
                                                    "wave_us",
                                                    "unaligned_64_rate",
                                                    "unaligned_8_rate",
                                                    "batched_rate"};
inline constexpr const char *kFittedLevelKeys[] = {
    "bandwidth_GBps", "latency_us", "base_us", "in_switch_reduction_GBps",
    "in_switch_latency_us"};

bool isOfNetwork(FigureKind kind);

/// Returns "GB/s", "us", or nothing for a share.
const char *unitOf(FigureKind kind);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_FIT_MACHINE_H
