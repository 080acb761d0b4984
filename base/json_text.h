//===- json_text.h - JSON text, values and pointers --------------*- C++
//-*-===//
//
// Foreign text becomes a JSON value here and nowhere else. The reader is
// stricter than the format: it rejects a key that is given twice, deep nesting,
// NaN and zero bytes, because each makes a file say something else than its
// author believes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_BASE_JSON_TEXT_H
#define MTPLAN_BASE_JSON_TEXT_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace mtplan::base {

/// A JSON value. Members keep the order of the file, so that everything that is
/// derived from a file is in the file's order.
using Json = nlohmann::ordered_json;

/// Rejects a text or a value. what() starts with the JSON pointer of the fault
/// or, where the text is not JSON, with "line:column".
class JsonError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
  /// \param where  empty for a fault of the root value
  JsonError(const std::string &where, const std::string &fault)
      : std::runtime_error(where.empty() ? fault : where + ": " + fault) {}
};

/// Limits that no honest file of a format reaches. A text beyond them is
/// rejected while it is read, before it takes memory or time.
struct JsonLimits {
  std::size_t depth = 64; ///< arrays and objects within each other
  std::size_t members = std::numeric_limits<std::size_t>::max(); ///< an object
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
};

/// Parses the whole of `text`. Keys that are given twice are reported together,
/// one a line. The time is linear in the text, and the depth of the call stack
/// does not follow the depth of the text.
/// \throws JsonError
Json parseJson(std::string_view text, const JsonLimits &limits = {});

//===----------------------------------------------------------------------===//
// Pointers (RFC 6901)
//===----------------------------------------------------------------------===//

/// Escapes a key as one token of a JSON pointer.
inline std::string pointerToken(std::string_view key) {
  std::string token;
  for (const char c : key)
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  return token;
}

/// Returns the pointer of an object's member.
inline std::string childPointer(const std::string &parent,
                                std::string_view key) {
  return parent + '/' + pointerToken(key);
}

/// Returns the pointer of an array's element.
inline std::string childPointer(const std::string &parent, std::size_t index) {
  return parent + '/' + std::to_string(index);
}

//===----------------------------------------------------------------------===//
// Questions about one value
//===----------------------------------------------------------------------===//

/// Writes a number as a person would: 80, 0.5, 1e+06.
std::string written(double value);

/// Writes a value for a message; it is cut if it is long.
std::string described(const Json &value);

/// Returns the value if it is written as a whole number from `least` to `most`:
/// 2.0 and 1e3 are not.
std::optional<std::int64_t> wholeNumber(const Json &value, std::int64_t least,
                                        std::int64_t most);

/// Writes "must be `kind`, got 17", the second half of a message.
std::string mustBe(std::string_view kind, const Json &value);
std::string mustBeWholeNumber(std::int64_t least, std::int64_t most,
                              const Json &value);
/// Names all `words`, and the nearest one if the value is a text.
std::string mustBeOneOf(std::span<const std::string_view> words,
                        const Json &value);
/// \param known  the keys that an object may have, not empty
std::string unknownKey(std::string_view key,
                       std::span<const std::string_view> known);

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_TEXT_H
