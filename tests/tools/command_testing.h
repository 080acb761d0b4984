//===- command_testing.h - Runs mtplan in tests -----------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_TOOLS_COMMAND_TESTING_H
#define MTPLAN_TESTS_TOOLS_COMMAND_TESTING_H

#include <sstream>
#include <string>
#include <vector>

#include "tools/command/command.h"

namespace mtplan::tools {

inline std::string examplePath(const std::string &name) {
  return std::string(MTPLAN_SOURCE_DIR) + "/examples/" + name + ".json";
}

/// The exit code and output of one run of mtplan.
struct Ran {
  int code = -1;
  std::string out, err;

  explicit Ran(const std::vector<std::string> &arguments,
               const Terminal &terminal = {}) {
    std::ostringstream output, errors;
    code = runCommand(arguments, output, errors, terminal);
    out = output.str();
    err = errors.str();
  }
};

/// Runs mtplan on an example model.
inline Ran runExample(const std::string &name,
                      std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), examplePath(name));
  return Ran(arguments);
}

} // namespace mtplan::tools

#endif // MTPLAN_TESTS_TOOLS_COMMAND_TESTING_H
