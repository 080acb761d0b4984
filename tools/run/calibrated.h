//===- calibrated.h - From measured runs to a machine file ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CALIBRATED_H
#define MTPLAN_TOOLS_RUN_CALIBRATED_H

#include <string>
#include <vector>

#include "planner/fit/fit_machine.h"
#include "runtime/calibration/calibration.h"

namespace mtplan::tools {

/// What runs do not say of the machine that they were measured on.
struct CalibratedOn {
  std::string name;   ///< of the machine
  std::string device; ///< its name: "AMD EPYC, 2 threads"
  std::string source; ///< what was run where and when
  /// A device of the presets: what cannot be measured is as there.
  std::string like;
  /// Peaks are what that device is known for; else the best that was seen.
  bool hasKnownPeaks = false;
  double memory = 0.0; ///< bytes, of one device
  int ranks = 1, ranksOfHost = 1;
};

/// A machine of such devices: the first preset's.
/// \throws planner::MachineError if there is none, with those that there are
planner::Machine machineLike(const std::string &device);

/// A measurement file (docs/measurements-format.md) of all that was run.
/// \throws planner::MachineError if there is no such device
std::string measurementsText(const CalibratedOn &on,
                             const std::vector<runtime::MeasuredRun> &runs);

struct Calibrated {
  std::string machineText;      ///< the machine file
  std::string measurementsText; ///< as fitted: what could not be told is given
  planner::Machine before;      ///< before: what there was without measuring
  planner::MachineFit fit;
  std::vector<std::string> untold; ///< figures that stay as they were, and why
};

/// \throws planner::MachineError, planner::MeasurementsError
Calibrated calibratedMachine(const CalibratedOn &on,
                             const std::vector<runtime::MeasuredRun> &runs);

/// What a machine's prices make of a run; for plans by this program's software.
double predictedSeconds(const runtime::MeasuredRun &run,
                        const planner::Machine &machine);

/// A line for who waits; before the first part what all of it will take.
std::string partText(const runtime::CalibrationPart &part, double seconds);

/// If `took` is well above the seconds that were asked for, a line that says
/// so and why; else nothing.
std::string lateText(double took, double seconds);

/// Every run: measured, its spread and rate, what was predicted before and is
/// now.
std::string tableOf(const std::vector<runtime::MeasuredRun> &runs,
                    const Calibrated &calibrated);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CALIBRATED_H
