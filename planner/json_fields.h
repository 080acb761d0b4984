//===- json_fields.h - Reads an object and tells all that is wrong -*- C++
//-*-===//
//
// A reader that does not stop at the first mistake: every method answers with a
// usable value and notes what was wrong, each note one sentence that starts
// with the JSON pointer of the offending value. Keys nobody asked for are
// mistakes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_JSON_FIELDS_H
#define MTPLAN_PLANNER_JSON_FIELDS_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/json_pointer.h"

namespace mtplan::planner {

/// Notes of one file, in the order they were found.
using JsonErrors = std::vector<std::string>;

/// The notes as one text, one a line.
std::string joinLines(const JsonErrors &errors);

/// Numbers from `least` to `most`; `least` itself only if not `above`.
struct NumberRange {
  double least = 0.0;
  double most = std::numeric_limits<double>::max();
  bool above = false;
};

/// `value` as a number in `range`; else a note and nothing.
std::optional<double> readNumber(const nlohmann::json &value,
                                 const std::string &pointer,
                                 const NumberRange &range, JsonErrors &errors);

/// `value` as a whole number from `least` to `most`; else a note and nothing.
std::optional<std::int64_t> readInteger(const nlohmann::json &value,
                                        const std::string &pointer,
                                        std::int64_t least, std::int64_t most,
                                        JsonErrors &errors);

/// The members of one object. A method without a fallback notes a missing key
/// and answers with the least legal value.
class JsonFields {
public:
  /// Notes it if `value` is no object; every member is then silently missing.
  JsonFields(const nlohmann::json &value, std::string where, JsonErrors &notes);

  /// The member, or null. Marks `key` as one that may be given.
  const nlohmann::json *find(const std::string &key);
  /// The same, noting a missing member.
  const nlohmann::json *need(const std::string &key);

  std::int64_t integer(const std::string &key, std::int64_t least,
                       std::int64_t most,
                       std::optional<std::int64_t> fallback = std::nullopt);
  double number(const std::string &key, const NumberRange &range,
                std::optional<double> fallback = std::nullopt);
  bool boolean(const std::string &key, bool fallback);
  std::string text(const std::string &key,
                   const std::optional<std::string> &fallback = std::nullopt);
  /// Index of the member's text in `names`.
  std::size_t oneOf(const std::string &key,
                    const std::vector<std::string> &names,
                    std::optional<std::size_t> fallback = std::nullopt);
  /// An array of whole numbers; empty if missing and not `required`.
  std::vector<std::int64_t> integers(const std::string &key, std::int64_t least,
                                     std::int64_t most, bool required);

  /// The member's elements with their pointers; empty if missing.
  std::vector<std::pair<const nlohmann::json *, std::string>>
  elements(const std::string &key, bool required);

  std::string pointerTo(const std::string &key) const;
  void fail(const std::string &key, const std::string &what);

  /// Notes every member whose key no method was asked for, with the nearest of
  /// those that were. Call it last.
  void rejectOthers();

private:
  const nlohmann::json *object; ///< null if the value is no object
  std::string pointer;
  JsonErrors &errors;
  std::vector<std::string> known;
};

/// Of `candidates`, which are not empty, the one with the least edit distance
/// to `word`, the first of several; of those that begin with it, if there are
/// any.
const std::string &nearestTo(const std::string &word,
                             const std::vector<std::string> &candidates);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_JSON_FIELDS_H
