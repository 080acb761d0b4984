//===- calibrate.h - `mtrun calibrate` --------------------------*- C++ -*-===//
//
// `mtrun calibrate` measures kernels and collectives, and writes a machine
// file.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUN_CALIBRATE_H
#define MTPLAN_TOOLS_RUN_CALIBRATE_H

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "planner/fit/fit_machine.h"
#include "runtime/calibration/calibration.h"

namespace CLI {
class App;
}

namespace mtplan::tools {

struct CalibrateFlags {
  std::string output, measurements; ///< files; measurements may be ""
  std::string backend = "cpu", like, name, date;
  std::string ranksAs = "auto";
  std::string precisions = "fp32,bf16,fp16";
  std::optional<int> ranks, threads;
  double seconds = 60.0;
  bool replaces = false;
};

CLI::App *describeCalibrate(CLI::App &app, CalibrateFlags &flags);

/// \return 0, or the exit status of the first process that failed
/// \throws BadInput
int runCalibrate(const CalibrateFlags &flags, std::ostream &out,
                 std::ostream &err);

/// Holds the machine facts that do not follow from the measured runs.
struct CalibratedOn {
  std::string name;
  std::string device; ///< "AMD EPYC, 2 threads"
  std::string source; ///< the program, the machine and the date
  /// Names the preset device whose figures are used where a figure cannot be
  /// measured.
  std::string like;
  /// If set, the preset device's peak rates replace the best measured rates.
  bool hasKnownPeaks = false;
  double memory = 0.0;            ///< bytes per device
  int ranks = 1, ranksOfHost = 1; ///< all ranks; ranks of one host
};

/// Returns the first preset machine with this device.
/// \throws planner::MachineError naming the devices if there is none
planner::Machine machineLike(const std::string &device);

/// Writes a measurement file (docs/measurements-format.md).
/// \throws planner::MachineError if the device is unknown
std::string measurementsText(const CalibratedOn &on,
                             const std::vector<runtime::MeasuredRun> &runs);

struct Calibrated {
  std::string machineText;
  /// The measurement file has a value in place of "fit" for each figure that
  /// the fit could not determine.
  std::string measurementsText;
  planner::Machine before;
  planner::MachineFit fit;
  std::vector<std::string> undetermined; ///< figures and reasons
};

/// Fits a machine to the runs.
/// \throws planner::MachineError, planner::MeasurementsError
Calibrated calibratedMachine(const CalibratedOn &on,
                             const std::vector<runtime::MeasuredRun> &runs);

planner::Precision precisionOf(runtime::ElementType type);

bool isGradient(const runtime::MeasuredRun &run);

double attentionFlopsOf(const runtime::MeasuredRun &run);

/// Predicts the time of a run with mtplan's own software file.
double predictedSeconds(const runtime::MeasuredRun &run,
                        const planner::Machine &machine);

/// Returns a progress line. For the first part, the text starts with a line
/// that states the number of runs and the requested seconds.
std::string partText(const runtime::CalibrationPart &part, double seconds);

/// Returns a line with the reason if `took` is well above the requested
/// seconds; else "".
std::string lateText(double took, double seconds);

/// Returns a table with a line per run: time, spread, rate, and the predictions
/// before and after calibration.
std::string tableOf(const std::vector<runtime::MeasuredRun> &runs,
                    const Calibrated &calibrated);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CALIBRATE_H
