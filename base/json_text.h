//===- json_text.h - JSON text, values and pointers -------------*- C++ -*-===//
//
// Parses JSON text into values. The parser is stricter than many others: it
// rejects a key that is given twice, deep nesting, NaN and zero bytes, because
// a file that contains one of these is probably not what its author intended.
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

/// Holds a JSON value. Members keep the order of the file, so that derived
/// output is deterministic.
using Json = nlohmann::ordered_json;

/// Reports a rejected text or value. what() starts with the JSON pointer of the
/// fault or, if the text is not JSON, is too long or is nested too deeply, with
/// "line:column".
class JsonError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
  /// \param where  empty for a fault of the root value
  JsonError(const std::string &where, const std::string &fault)
      : std::runtime_error(where.empty() ? fault : where + ": " + fault) {}
};

/// Holds limits that no legitimate file reaches. Text beyond a limit is
/// rejected before it uses much memory or time.
struct JsonLimits {
  std::size_t depth = 64; ///< nested arrays and objects
  std::size_t members = std::numeric_limits<std::size_t>::max(); ///< per object
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
};

/// Parses all of `text`. Repeated keys are reported together, one per line. The
/// time is about linear in the length of the text, and the parser does not
/// recurse.
/// \throws JsonError
Json parseJson(std::string_view text, const JsonLimits &limits = {});

//===----------------------------------------------------------------------===//
// Pointers (RFC 6901)
//===----------------------------------------------------------------------===//

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

inline std::string childPointer(const std::string &parent,
                                std::string_view key) {
  return parent + '/' + pointerToken(key);
}

inline std::string childPointer(const std::string &parent, std::size_t index) {
  return parent + '/' + std::to_string(index);
}

//===----------------------------------------------------------------------===//
// Checks and messages for one value
//===----------------------------------------------------------------------===//

/// Formats a number with at most six significant digits: 80, 0.5, 1e+06.
std::string written(double value);

std::string described(const Json &value);

/// Returns the value if it is written as an integer from `least` to `most`. The
/// spellings 2.0 and 1e3 are rejected.
std::optional<std::int64_t> wholeNumber(const Json &value, std::int64_t least,
                                        std::int64_t most);

/// Returns the end of a message, such as "must be a string, got 17".
std::string mustBe(std::string_view kind, const Json &value);
std::string mustBeWholeNumber(std::int64_t least, std::int64_t most,
                              const Json &value);
/// Returns a message that lists all `words`, and the nearest of them if the
/// value is a string.
std::string mustBeOneOf(std::span<const std::string_view> words,
                        const Json &value);
/// Returns a message that names the valid key nearest to `key`.
/// \param known  the keys that an object may have, not empty
std::string unknownKey(std::string_view key,
                       std::span<const std::string_view> known);

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_TEXT_H
