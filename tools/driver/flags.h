//===- flags.h - The flags of `mtplan`, a row each --------------*- C++ -*-===//
//
// Each row of flagRows() describes one flag: its heading in --help, its name,
// the type and the phrase that --help shows, the reader that checks its text
// and fills a member of the request, and the writer of the value that
// constraints files and saved plans hold. The command line, constraints files
// and saved plans are all read by the same rows.
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

  /// Returns the text of a flag; null if the flag was not given.
  const std::string *find(const std::string &flag) const;
  /// Returns the text of a flag; empty if the flag was not given.
  std::string text(const std::string &flag) const;
  /// Returns whether a flag without a value was given.
  bool isOn(const std::string &flag) const;
  /// Returns the values of a repeatable flag; none if the flag was not given.
  const std::vector<std::string> &list(const std::string &flag) const;
};

/// Names the kind of a flag's value, which determines the value's JSON form in
/// a constraints file.
enum class FlagKind : std::uint8_t {
  count,  ///< a whole number
  counts, ///< one or several whole numbers, or "any"
  number,
  word,
  words,     ///< one or several words
  text,      ///< any text; constraints files do not have it
  list,      ///< may be given several times
  pair,      ///< has two values
  onOrAbsent ///< has no value
};

/// Describes a flag's value: its kind, and the reader of its text.
struct FlagValue {
  FlagKind kind = FlagKind::text;
  /// Writes the value into the request; everything wrong with `text` becomes a
  /// fault. A flag without a reader is read by read_flags.cpp or command.cpp.
  std::function<void(const std::string &text, PlanRequest &request,
                     std::vector<std::string> &faults)>
      read;
};

/// Returns a flag's value as files store it. A null value is not stored.
using FlagWriter = nlohmann::ordered_json (*)(
    const PlanRequest &request, const planner::SearchOptions &options);

/// Says how files, besides the command line, may decide the value of a flag.
/// FlagRow::scope is a sum of these bits.
enum FlagScope : unsigned {
  kCommandOnly = 0,
  kConstraint = 1, ///< constraints files and saved plans may set it
  kReplaceable =
      2,        ///< may be given beside --load, and replaces the saved value
  kImported = 4 ///< --import decides it
};

/// These headings group the flags that decide how the model is parallelised and
/// what is kept in memory.
inline constexpr const char *kParallelism = "Parallelism";
inline constexpr const char *kMemory = "Memory";

struct FlagRow {
  const char *group; ///< heading in --help
  const char *name;  ///< "--tp", or "-o,--output"
  const char *type;  ///< type of the value in --help; "" if there is none
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
