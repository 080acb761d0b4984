//===- preset_files_json.h - Machine and software presets -------*- C++ -*-===//
//
// Declares the code that machine and software files share. embed_presets.cmake
// embeds the files of examples/machines and examples/software in the program as
// presets, so that presets are found from any current directory. Every number
// and flag in a file is an object {"value": ..., "source": "..."}. In a short
// machine file, the device is the name of a preset's device, or an object that
// changes some figures of a preset's device.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_PRESET_FILES_JSON_H
#define MTPLAN_PLANNER_MACHINE_PRESET_FILES_JSON_H

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace mtplan::planner {

struct Preset {
  const char *name; ///< file name without ".json"
  const char *text;
};

/// The presets are sorted by name.
std::span<const Preset> machinePresets();
std::span<const Preset> softwarePresets();

std::vector<std::string> namesOf(std::span<const Preset> presets);

/// Returns the text of the preset `nameOrPath` or, if no preset has that name,
/// of the file at that path; nothing if neither exists.
std::optional<std::string> textOf(std::span<const Preset> presets,
                                  const std::string &nameOrPath);

/// Returns the error message for a name or path that textOf does not find.
/// \param kind  "machine" or "software"
std::string notFound(const char *kind, std::span<const Preset> presets,
                     const std::string &nameOrPath);

/// Returns the names of the devices that presets describe, each once, in the
/// presets' order.
std::vector<std::string> knownDevices();

/// Replaces a short /device of a machine file by the complete object, and adds
/// the preset's default precision if the file has none. An unknown device is an
/// error and is removed from `file`.
void completeDevice(base::Json &file, base::JsonErrors &errors);

/// Reads an object whose members are values with sources. base::JsonFields
/// reads objects with plain members.
class SourcedFields {
public:
  SourcedFields(const base::Json &value, const std::string &pointer,
                base::JsonErrors &notes)
      : plain(value, pointer, notes), errors(notes) {}

  /// Reads the members that have no source: names, and nested objects.
  base::JsonFields plain;

  /// Returns the member's value. A missing member gives null and is no error.
  const base::Json *value(const std::string &key);
  std::optional<double> optional(const std::string &key,
                                 const base::NumberRange &range);
  double number(const std::string &key, const base::NumberRange &range);
  double number(const std::string &key, const base::NumberRange &range,
                double fallback);
  std::int64_t count(const std::string &key, std::int64_t most);
  bool flag(const std::string &key);
  /// Returns rows of numbers, or no rows if the member is missing. An array
  /// without rows is an error.
  /// \param ranges  the allowed numbers, by column
  std::vector<std::vector<double>>
  rows(const std::string &key, const std::vector<base::NumberRange> &ranges);
  /// Returns strings. A missing member or an empty array is an error.
  std::vector<std::string> texts(const std::string &key);
  /// Returns numbers, or no numbers if the member is missing. An empty array is
  /// an error.
  std::vector<double> numbers(const std::string &key,
                              const base::NumberRange &range);

private:
  /// Returns the member's value if it is a non-empty array, else null. A member
  /// with another value is an error; a missing member is no error.
  const base::Json *list(const std::string &key, const char *kind);
  std::string pointerTo(const std::string &key) const {
    return plain.pointerTo(key) + "/value";
  }
  base::JsonErrors &errors;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_PRESET_FILES_JSON_H
