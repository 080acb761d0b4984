//===- command_testing.h - Runs mtplan in tests -----------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_TOOLS_COMMAND_TESTING_H
#define MTPLAN_TESTS_TOOLS_COMMAND_TESTING_H

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tools/command/command.h"

namespace mtplan::tools {

inline std::string examplePath(const std::string &name) {
  return std::string(MTPLAN_SOURCE_DIR) + "/examples/" + name + ".json";
}

/// Holds the exit code and output of one run of mtplan.
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

/// Adds the flags that leave only dp, tp and the micro-batch open, and prefer
/// the fastest plan, unless `arguments` have them. Nothing is added beside a
/// file of constraints, which must state all constraints by itself.
inline std::vector<std::string> plain(std::vector<std::string> arguments) {
  if (std::ranges::find(arguments, "--constraints") != arguments.end())
    return arguments;
  constexpr const char *kPlain[][2] = {
      {"--open", "none"}, {"--tolerance", "0"}, {"--splits", "all"}};
  for (const auto &[flag, value] : kPlain)
    if (std::ranges::find(arguments, flag) == arguments.end())
      arguments.insert(arguments.end(), {flag, value});
  return arguments;
}

/// Runs mtplan on an example model, with plain flags.
inline Ran runExample(const std::string &name,
                      std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), examplePath(name));
  return Ran(plain(arguments));
}

} // namespace mtplan::tools

#endif // MTPLAN_TESTS_TOOLS_COMMAND_TESTING_H
