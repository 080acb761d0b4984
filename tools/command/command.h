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

Terminal terminalOf();

/// Runs mtplan. The command writes only files and folders that the command line
/// names. It reads only files that the command line, a constraints file or a
/// saved plan names.
/// \param arguments  without the program's name
/// \returns the exit status
int runCommand(const std::vector<std::string> &arguments, std::ostream &out,
               std::ostream &err, const Terminal &terminal);

/// Returns nothing if --help, --version or an error ends the command;
/// `exitCode` then holds the exit status.
std::optional<Flags> parseArguments(const std::vector<std::string> &arguments,
                                    std::ostream &out, std::ostream &err,
                                    int &exitCode);

/// If the first argument is this word, mtplan runs runFitHardware().
inline constexpr const char *kFitHardware = "fit-hardware";

/// Fits a machine file to a measurement file. With -o FILE, the machine goes to
/// FILE and the report to `out`; otherwise, the machine goes to `out` and the
/// report to `err`.
/// \returns the exit status
int runFitHardware(const std::vector<std::string> &arguments, std::ostream &out,
                   std::ostream &err);

/// If the first argument is this word, mtplan runs runFitSoftware().
inline constexpr const char *kFitSoftware = "fit-software";

/// Fits a software file to measured runs. With -o FILE, the software goes to
/// FILE and the report to `out`; otherwise, the software goes to `out` and the
/// report to `err`.
/// \returns the exit status
int runFitSoftware(const std::vector<std::string> &arguments, std::ostream &out,
                   std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_COMMAND_COMMAND_H
