//===- json_text.h - Text that claims to be JSON ----------------*- C++ -*-===//
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
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace mtplan::base {

/// A JSON value. Members keep the order of the file, so that everything that is
/// derived from a file is in the file's order.
using Json = nlohmann::ordered_json;

/// A text or a value that is rejected. what() starts with the JSON pointer of
/// the fault, or, where the text is not JSON, with "line:column".
class JsonError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
  /// \param where  of a fault of the root value, empty
  JsonError(const std::string &where, const std::string &fault)
      : std::runtime_error(where.empty() ? fault : where + ": " + fault) {}
};

/// Limits that no honest file of a format reaches. What exceeds them is
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

} // namespace mtplan::base

#endif // MTPLAN_BASE_JSON_TEXT_H
