//===- nearest_option.cpp - What was typed for which option ---------------===//

#include "tools/nearest_option.h"

#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "runtime/plan/nearest_word.h"

namespace mtplan::tools {

std::string nearestOption(const CLI::App &command, const std::string &typed) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options()) {
    for (const std::string &letter : option->get_snames())
      if (CLI::detail::to_lower(typed) == "-" + CLI::detail::to_lower(letter))
        return "-" + letter;
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  }
  const std::vector<std::string_view> words(names.begin(), names.end());
  // One dash for two: "-p" begins "--pp".
  const bool isShort = typed.starts_with('-') && !typed.starts_with("--");
  return std::string(runtime::nearestTo(isShort ? '-' + typed : typed, words));
}

} // namespace mtplan::tools
