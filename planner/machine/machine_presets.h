//===- machine_presets.h - Files that come with the program -----*- C++ -*-===//
//
// The files of examples/machines and examples/software as they were at build
// time, so that a preset is found in any current directory and wherever the
// program was copied. embed_presets.cmake generates the definition.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_MACHINE_PRESETS_H
#define MTPLAN_PLANNER_MACHINE_MACHINE_PRESETS_H

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtplan::planner {

struct Preset {
  const char *name; ///< file name without ".json"
  const char *text; ///< of the file
};

/// All presets, sorted by name.
std::span<const Preset> machinePresets();
std::span<const Preset> softwarePresets();

std::vector<std::string> namesOf(std::span<const Preset> presets);

/// Returns the text of a preset by name, else of the file at that path; nothing
/// if there is neither.
std::optional<std::string> textOf(std::span<const Preset> presets,
                                  const std::string &nameOrPath);

/// Returns the message for that case.
/// \param kind  "machine", "software"
std::string notFound(const char *kind, std::span<const Preset> presets,
                     const std::string &nameOrPath);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_PRESETS_H
