//===- flags.h - The flags of `mtplan`, a row each --------------*- C++ -*-===//
//
// A row of flagRows() describes one flag: its texts in --help, the function
// that reads a value into the request, and the function that writes the value
// to files. The command line, constraints files and saved plans use the same
// rows.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_FLAGS_H
#define MTPLAN_TOOLS_DRIVER_FLAGS_H

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/search.h"
#include "tools/driver/request.h"

namespace mtplan::tools {

/// Holds the command line as typed, before any value is checked. The keys are
/// short names of flags ("--tp", "-o"), or "MODEL".
struct Flags {
  std::map<std::string, std::optional<std::string>> texts;
  std::map<std::string, std::vector<std::string>> lists;
  std::map<std::string, bool> switches;
  /// Maps a flag that a file gave to its location: "a.json: /tp".
  std::map<std::string, std::string> locations;

  /// Returns null if the flag was not given.
  const std::string *find(const std::string &flag) const;
  /// Returns an empty text if the flag was not given.
  std::string text(const std::string &flag) const;
  bool isOn(const std::string &flag) const;
  const std::vector<std::string> &list(const std::string &flag) const;
};

/// Determines the JSON form of a flag's value in a constraints file.
enum class FlagKind : std::uint8_t {
  count,
  counts, ///< one or several whole numbers, or "any"
  number,
  word,
  words,
  text, ///< any text; not allowed in constraints files
  list,
  pair,
  onOrAbsent
};

struct FlagValue {
  FlagKind kind = FlagKind::text;
  /// Writes the value into the request, and adds a fault for each error in
  /// `text`. If this function is empty, read_flags.cpp or command.cpp reads the
  /// flag.
  std::function<void(const std::string &text, PlanRequest &request,
                     std::vector<std::string> &faults)>
      read;
};

/// Returns a flag's value as files store it. A null value is not stored.
using FlagWriter = nlohmann::ordered_json (*)(
    const PlanRequest &request, const planner::SearchOptions &options);

/// Says which inputs other than the command line may decide a flag.
/// FlagRow::scope is a sum of these bits.
enum FlagScope : unsigned {
  kCommandOnly = 0,
  kConstraint = 1,  ///< constraints files and saved plans may set the flag
  kReplaceable = 2, ///< with --load, the flag replaces the saved value
  kImported = 4     ///< --import decides the flag
};

inline constexpr const char *kParallelism = "Parallelism";
inline constexpr const char *kMemory = "Memory";

struct FlagRow {
  const char *group;
  const char *name;
  const char *type; ///< type in --help; "" for flags without a value
  const char *help;
  FlagValue value;
  unsigned scope = kCommandOnly;
  FlagWriter write = nullptr;

  /// Returns the name in messages, which is the key in Flags: "--tp", "-o".
  std::string shortName() const;
  /// Returns the key in a constraints file: "micro_batch".
  std::string key() const;
};

/// Returns all flags, in the order of --help and of the keys in files.
const std::vector<FlagRow> &flagRows();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_FLAGS_H
