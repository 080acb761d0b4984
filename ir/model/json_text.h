//===- json_text.h - A JSON value as plain members --------------*- C++ -*-===//
//
// The readers of model files work on plain values, so that they need no JSON
// library. The text is read by base/json_text.h, and the order of keys is kept,
// so that everything derived from a file is in the file's order.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_JSON_TEXT_H
#define MTPLAN_IR_MODEL_JSON_TEXT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::ir {

inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

struct JsonMember;

/// One value. `integer` is set where a number is whole, which 12.0 is, as in
/// JSON Schema. The members are in the order of the file.
struct JsonValue {
  enum class Kind : std::uint8_t {
    null,
    boolean,
    number,
    string,
    array,
    object
  };
  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0.0;
  std::optional<std::int64_t> integer;
  std::string string;
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;

  /// Returns the member called `key`, or null.
  const JsonValue *find(std::string_view key) const;
  /// Writes the kind and, where it is short, the value: `the number 17`.
  std::string describe() const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

/// Parses `text`. On failure returns nothing and sets `error` to
/// "line:column: what is wrong" or, for repeated keys, a line "/pointer: ..."
/// for each.
std::optional<JsonValue> parseJson(std::string_view text, std::string &error);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_JSON_TEXT_H
