//===- command_line.h - Command lines and exit statuses ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_COMMAND_LINE_H
#define MTPLAN_TOOLS_TEXT_COMMAND_LINE_H

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mtplan::tools {

inline constexpr int kDone = 0;
/// A command exits with this status if no plan fits, a proof fails, or a
/// published run is faster than the plan.
inline constexpr int kNothingFits = 1;
inline constexpr int kBadInput = 2;

/// Returns the option of `command` that is nearest to the unknown option
/// `typed`: a letter of the other case ("-o" for "-O"), else the nearest long
/// option ("--pp" for "-p").
std::string nearestOption(const CLI::App &command, const std::string &typed);

/// Reports each unknown flag to `err` with the nearest known flag, and each
/// stray word with `takes`. Help and versions go to `out`.
/// \param takes     message for a stray word: "mtplan takes one model"
/// \param exitCode  set if the function returns false
/// \return whether the command may run
bool parseOrReport(CLI::App &app, const std::vector<std::string> &arguments,
                   const std::string &takes, std::ostream &out,
                   std::ostream &err, int &exitCode);

int printErrors(const std::vector<std::string> &errors, std::ostream &err);

/// Returns the exit status of `body`. Returns kBadInput, after a line on
/// standard error, if `body` throws or standard output cannot be written.
/// Ignores SIGXFSZ, so that a write beyond the file-size limit fails like a
/// full disk.
int runMain(const std::function<int()> &body);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_COMMAND_LINE_H
