//===- machine_presets.cpp - A preset or a file, by name ------------------===//

#include "planner/machine/machine_presets.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace mtplan::planner {

std::vector<std::string> namesOf(std::span<const Preset> presets) {
  std::vector<std::string> names;
  names.reserve(presets.size());
  for (const Preset &preset : presets)
    names.emplace_back(preset.name);
  return names;
}

std::optional<std::string> textOf(std::span<const Preset> presets,
                                  const std::string &nameOrPath) {
  for (const Preset &preset : presets)
    if (nameOrPath == preset.name)
      return preset.text;
  std::error_code ignored;
  std::ifstream file;
  if (std::filesystem::is_regular_file(nameOrPath, ignored))
    file.open(nameOrPath, std::ios::binary);
  if (!file.is_open())
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string notFound(const char *kind, std::span<const Preset> presets,
                     const std::string &nameOrPath) {
  std::string names;
  for (const Preset &preset : presets)
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  return std::string("no ") + kind + " file \"" + nameOrPath +
         "\" can be read, and the presets are: " + names;
}

} // namespace mtplan::planner
