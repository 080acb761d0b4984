//===- interval.h - How far predictions may be off --------------*- C++ -*-===//
//
// The step time that a plan reaches differs from its prediction. Software files
// list how measured runs compared with predictions. Those runs vouch for plans
// under the same software on the same devices.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_INTERVAL_H
#define MTPLAN_PLANNER_MACHINE_INTERVAL_H

#include <vector>

#include "planner/machine/software.h"

namespace mtplan::planner {

/// Holds factors on a predicted step time. Eight in ten steps are expected
/// between them.
struct Interval {
  double low = 1.0, high = 1.0;
};

/// Is the interval if no run vouches for a prediction: rounded, the 10th and the
/// 90th percentile of measured / predicted over 26 published runs under software
/// to which no figure was fitted (docs/intervals.md).
inline constexpr Interval kUnvouched{0.8, 1.5};

struct VouchedInterval {
  Interval interval;
  const Accuracy *runs = nullptr; ///< the runs that vouch; null: none
};

/// Returns the interval of a step on `devices` devices. An entry for the
/// device's name takes precedence over one for its architecture, and of the
/// entries with at least as many devices the smallest counts. Runs on fewer
/// devices do not vouch.
/// The result points into `software`.
VouchedInterval stepInterval(const Software &software, const Device &device,
                             int devices);

/// Holds measured / predicted of a run.
struct Ratio {
  double value = 1.0;
  double weight = 1.0; ///< relative to that of other runs
};

/// Returns the interval in which eight of ten further ratios are expected
/// (split conformal prediction, Lei et al. 2018, section 2.2): order statistics
/// of n + 1 values, at ranks that the weights stretch. The logarithms are
/// averaged with those of kUnvouched, which count as kDoubt runs, so that a few
/// runs promise little.
Interval intervalOf(std::vector<Ratio> ratios);
inline constexpr double kDoubt = 1.0;

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_INTERVAL_H
