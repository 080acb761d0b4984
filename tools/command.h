//===- command.h - The command `mtplan` -------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_COMMAND_H
#define MTPLAN_TOOLS_COMMAND_H

#include <iosfwd>
#include <string>
#include <vector>

#include "tools/request.h"

namespace mtplan::tools {

/// What a command ends with.
inline constexpr int kDone = 0;
inline constexpr int kNothingFits = 1; ///< or a proof failed
inline constexpr int kBadInput = 2;

struct Terminal {
  bool colour = false;   ///< standard output is a terminal
  bool progress = false; ///< standard error is one
};

/// Runs the command. Only input files and the file of `--dot` are touched.
/// \param arguments  without the program's name
int runCommand(const std::vector<std::string> &arguments, std::ostream &out,
               std::ostream &err, const Terminal &terminal);

/// Reads the command line. Empty: `exitCode` has been decided, by --help,
/// --version or a flag that does not exist.
std::optional<Flags> parseArguments(const std::vector<std::string> &arguments,
                                    std::ostream &out, std::ostream &err,
                                    int &exitCode);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_COMMAND_H
