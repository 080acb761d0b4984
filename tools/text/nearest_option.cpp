//===- nearest_option.cpp - The option most like a misspelled one ---------===//

#include "tools/text/nearest_option.h"

#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/nearest_word.h"

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
  // One dash stands for two: "-p" is read as the start of "--pp".
  const bool isShort = typed.starts_with('-') && !typed.starts_with("--");
  return std::string(base::nearestTo(isShort ? '-' + typed : typed, words));
}

} // namespace mtplan::tools
