//===- nearest_option.h - The option most like a misspelled one -*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_NEAREST_OPTION_H
#define MTPLAN_TOOLS_TEXT_NEAREST_OPTION_H

#include <string>

namespace CLI {
class App;
}

namespace mtplan::tools {

/// Returns the option of `command` that is most like `typed`, which is not an
/// option: "-o" for "-O", else a long option, "--pp" for "-p".
std::string nearestOption(const CLI::App &command, const std::string &typed);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_NEAREST_OPTION_H
