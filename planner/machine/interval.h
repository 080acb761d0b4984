//===- interval.h - How far predictions may be off --------------*- C++ -*-===//
//
// The step time that a plan reaches differs from its prediction. Software files
// list how measured runs compared with predictions. These runs validate plans
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

/// Is the interval of a prediction that no run validates. The ends are the 10th
/// and the 90th percentile, rounded, of measured / predicted over 26 published
/// runs under software to which no figure was fitted (docs/intervals.md).
inline constexpr Interval kUnvalidated{0.8, 1.5};

struct StepInterval {
  Interval interval;
  const Accuracy *runs = nullptr; ///< the runs behind it; null: none
};

/// Returns the interval of a step on `devices` devices. An entry for the
/// device's name takes precedence over one for its architecture, and the first
/// entry whose largest run has at least as many devices counts. The result
/// points into `software`.
StepInterval stepInterval(const Software &software, const Device &device,
                          int devices);

/// Holds measured / predicted of a run.
struct Ratio {
  double value = 1.0;
  double weight = 1.0; ///< relative to that of other runs
};

/// Returns the interval in which eight of ten further ratios are expected
/// (split conformal prediction, Lei et al. 2018, section 2.2): order statistics
/// of n + 1 values, at ranks that the weights stretch. The logarithms are
/// averaged with those of kUnvalidated, which count as kPriorRuns runs, so that
/// a few runs promise little.
Interval intervalOf(std::vector<Ratio> ratios);
inline constexpr double kPriorRuns = 1.0;

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_INTERVAL_H
