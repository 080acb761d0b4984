//===- calibrate.h - `mtrun calibrate` --------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CALIBRATE_H
#define MTPLAN_TOOLS_RUN_CALIBRATE_H

#include <iosfwd>
#include <optional>
#include <string>

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

/// Adds the subcommand `calibrate` to `app`, and returns it.
CLI::App *describeCalibrate(CLI::App &app, CalibrateFlags &flags);

/// Measures the machine, and writes the machine file.
/// \return 0, or the exit status of the first process that failed
/// \throws BadInput
int runCalibrate(const CalibrateFlags &flags, std::ostream &out,
                 std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CALIBRATE_H
