//===- figures.h - Figures of a machine that can be measured ----*- C++ -*-===//
//
// Values are in the units of the machine file: us, GB/s, shares.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_FIT_FIGURES_H
#define MTPLAN_PLANNER_FIT_FIGURES_H

#include "planner/fit/least_squares.h"
#include "planner/fit/measurements.h"

namespace mtplan::planner {

/// The keys of the machine file that a fit can find, as messages list them.
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
FigureKind deviceFigure(std::size_t key); ///< by index in kFittedDeviceKeys
FigureKind levelFigure(std::size_t key);  ///< by index in kFittedLevelKeys

bool isOfNetwork(FigureKind kind);

/// Returns the precision that owns the figure; none if it applies to all.
std::optional<Precision> precisionOf(FigureKind kind);

/// Returns the physical limits of a figure, and where the search starts.
FitUnknown unknownOf(const Figure &figure, const Measurements &measured);

void setFigure(Machine &machine, const Figure &figure, double value);

/// "GB/s", "us", or nothing for a share.
const char *unitOf(FigureKind kind);

/// Returns which measurements would determine the figure.
std::string adviceOf(const Figure &figure, const Machine &machine);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_FIT_FIGURES_H
