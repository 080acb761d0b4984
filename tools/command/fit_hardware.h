//===- fit_hardware.h - `mtplan fit-hardware` -------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_COMMAND_FIT_HARDWARE_H
#define MTPLAN_TOOLS_COMMAND_FIT_HARDWARE_H

#include <iosfwd>
#include <string>
#include <vector>

namespace mtplan::tools {

/// This word, as the first argument, selects the command.
inline constexpr const char *kFitHardware = "fit-hardware";

/// Fits a machine file to a measurement file. With -o, the machine is written
/// to that file and the report to `out`; without -o, the machine to `out` and
/// the report to `err`.
/// \param arguments  the arguments after kFitHardware
/// \returns the exit status
int runFitHardware(const std::vector<std::string> &arguments, std::ostream &out,
                   std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_COMMAND_FIT_HARDWARE_H
