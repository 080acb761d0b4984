//===- parse_error.h - What is wrong with a command line --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PARSE_ERROR_H
#define MTPLAN_TOOLS_PARSE_ERROR_H

#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mtplan::tools {

/// Reads `arguments` for `app`. What cannot be read is said to `err`: every
/// flag that there is not, with the nearest that there is, and what `takes`
/// says of a word that belongs to nothing; last, where the flags are listed.
/// Help and versions go to `out`.
/// \param takes     "One model is planned"
/// \param exitCode  left as it is where the command is to be run
/// \return whether it is
bool parseOrSay(CLI::App &app, const std::vector<std::string> &arguments,
                const std::string &takes, std::ostream &out, std::ostream &err,
                int &exitCode);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PARSE_ERROR_H
