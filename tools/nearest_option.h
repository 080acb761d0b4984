//===- nearest_option.h - What was typed for which option -------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_NEAREST_OPTION_H
#define MTPLAN_TOOLS_NEAREST_OPTION_H

#include <string>

namespace CLI {
class App;
}

namespace mtplan::tools {

/// Of the options that `command` has, the one that is most like `typed`, which
/// it does not have: "-o" for "-O", else a long one, "--pp" for "-p".
std::string nearestOption(const CLI::App &command, const std::string &typed);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_NEAREST_OPTION_H
