//===- command.h - The command `mtplan` -------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_COMMAND_COMMAND_H
#define MTPLAN_TOOLS_COMMAND_COMMAND_H

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/driver/flags.h"
#include "tools/text/command_line.h"

namespace mtplan::tools {

struct Terminal {
  bool colour = false;   ///< use colours on standard output
  bool progress = false; ///< show progress on standard error
};

/// Runs the command. Only files named on the command line are read or written.
/// \param arguments  without the program's name
/// \returns the exit status
int runCommand(const std::vector<std::string> &arguments, std::ostream &out,
               std::ostream &err, const Terminal &terminal);

/// Reads the command line. Returns nothing if --help, --version or an error
/// ends the command; `exitCode` then holds the exit status.
std::optional<Flags> parseArguments(const std::vector<std::string> &arguments,
                                    std::ostream &out, std::ostream &err,
                                    int &exitCode);

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

#endif // MTPLAN_TOOLS_COMMAND_COMMAND_H
