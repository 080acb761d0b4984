//===- parse_error.h - Errors of a command line -----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_PARSE_ERROR_H
#define MTPLAN_TOOLS_TEXT_PARSE_ERROR_H

#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mtplan::tools {

/// Parses `arguments` for `app`. Each unknown flag is reported to `err` with
/// the nearest known one, and each stray word with `takes`; a last line names
/// --help. Help and versions go to `out`.
/// \param takes     "mtplan takes one model"
/// \param exitCode  set unless the command is to run
/// \return whether the command is to run
bool parseOrSay(CLI::App &app, const std::vector<std::string> &arguments,
                const std::string &takes, std::ostream &out, std::ostream &err,
                int &exitCode);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_PARSE_ERROR_H
