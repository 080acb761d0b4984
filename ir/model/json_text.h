//===- json_text.h - JSON that says where it is wrong -----------*- C++ -*-===//
//
// A strict reading of JSON text into plain values: no key twice, no NaN or
// Infinity, no nesting or size that could hurt. The order of keys is kept, so
// that everything derived from a file is in the file's order.
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

/// One value. `integer` holds where a number is one (12.0 is, as in JSON
/// Schema); the members are in the order of the file.
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

  /// The member called `key`, or null.
  const JsonValue *find(std::string_view key) const;
  /// The kind and, where short, the value: `number 17`, `string "x"`, `null`.
  std::string describe() const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

/// Parses `text`. On failure returns nothing and sets `error` to
/// "line:column: what is wrong" or, for a repeated key, "/pointer: ...".
std::optional<JsonValue> parseJson(std::string_view text, std::string &error);

/// `key` as one reference token of a JSON pointer (RFC 6901).
std::string pointerToken(std::string_view key);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_JSON_TEXT_H
