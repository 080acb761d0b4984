//===- json_fields.h - Reads an object and reports all faults ---*- C++ -*-===//
//
// This reader is for files that people write. It reports all faults of a file
// at once, each as one sentence that starts with the JSON pointer of the value.
// Reading continues with a valid value in place of the faulty one. A key that
// no method asked for is a fault. The reader of json_node.h stops at the first
// fault.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_BASE_JSON_FIELDS_H
#define MTPLAN_BASE_JSON_FIELDS_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace mtplan::base {

using JsonErrors = std::vector<std::string>;

std::string joinLines(const JsonErrors &errors);

/// Holds the range from `least` to `most`; `above` excludes `least`.
struct NumberRange {
  double least = 0.0;
  double most = std::numeric_limits<double>::max();
  bool above = false;
};

/// Returns `value` if it is a number in the range. Records a fault otherwise.
std::optional<double> readNumber(const Json &value, const std::string &pointer,
                                 const NumberRange &range, JsonErrors &errors);

std::optional<std::int64_t> readInteger(const Json &value,
                                        const std::string &pointer,
                                        std::int64_t least, std::int64_t most,
                                        JsonErrors &errors);

/// Reads the members of one object. If a key is missing, a method without a
/// fallback records a fault and returns the smallest number of the range, index
/// 0 or empty text.
class JsonFields {
public:
  /// Records a fault if `value` is not an object. Every member then counts as
  /// missing, and no further fault is recorded.
  JsonFields(const Json &value, std::string where, JsonErrors &notes);

  /// Returns the member, or null if it is missing. Marks `key` as an allowed
  /// key.
  const Json *find(const std::string &key);
  /// Returns the member. Records a fault and returns null if it is missing.
  const Json *need(const std::string &key);

  std::int64_t integer(const std::string &key, std::int64_t least,
                       std::int64_t most,
                       std::optional<std::int64_t> fallback = std::nullopt);
  double number(const std::string &key, const NumberRange &range,
                std::optional<double> fallback = std::nullopt);
  bool boolean(const std::string &key, bool fallback);
  std::string text(const std::string &key,
                   const std::optional<std::string> &fallback = std::nullopt);
  /// Returns the index of the member's text in `names`.
  std::size_t oneOf(const std::string &key,
                    const std::vector<std::string> &names,
                    std::optional<std::size_t> fallback = std::nullopt);
  /// Returns the integers of an array, or none if the member is missing.
  std::vector<std::int64_t> integers(const std::string &key, std::int64_t least,
                                     std::int64_t most, bool required);

  /// Returns the elements of an array with their JSON pointers, or none if the
  /// member is missing.
  std::vector<std::pair<const Json *, std::string>>
  elements(const std::string &key, bool required);

  std::string pointerTo(const std::string &key) const;
  void fail(const std::string &key, const std::string &what);

  /// Records a fault for every key that no method asked for. The fault names
  /// the nearest allowed key. This method must be called last.
  void rejectOthers();

private:
  const Json *object; ///< null if the value is not an object
  std::string pointer;
  JsonErrors &errors;
  std::vector<std::string> known;
};

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_FIELDS_H
