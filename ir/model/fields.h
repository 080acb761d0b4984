//===- fields.h - Typed access to a JSON object -----------------*- C++ -*-===//
//
// Reading a field also checks it. A field that is missing, mistyped or out of
// range becomes a line of Findings, and the reader goes on without it, so that
// all violations of a file are reported at once.
//
// The readers of model files work on plain values, so that they need no JSON
// library. The text is read by base/json_text.h, and the order of keys is kept,
// so that everything derived from a file is in the file's order.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_FIELDS_H
#define MTPLAN_IR_MODEL_FIELDS_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"

namespace mtplan::ir {

inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

struct JsonMember;

/// One JSON value. `integer` is set where a number is whole, which 12.0 is, as
/// in JSON Schema. The members are in the order of the file.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };
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

/// Sizes are below this, so that a product of two fits in an int64.
inline constexpr std::int64_t kSizeLimit = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxLayers = 10'000;

/// The errors and notes about one file.
struct Findings {
  std::string file;
  std::vector<std::string> errors, notes;

  void error(std::string_view pointer, std::string_view what);
  /// Returns whether `value` is an object, and adds an error if not.
  bool expectObject(const JsonValue &value, std::string_view pointer);
  void note(std::string_view what) { notes.emplace_back(what); }
};

/// Joins names as "a, b and c".
std::string listOf(const std::vector<std::string> &names);
/// Writes `unknown key "lyer_norm"; nearest first, known are layer_norm and
/// ...`
std::string unknownName(std::string_view what, std::string_view word,
                        const std::vector<std::string> &names);

/// An object being read. Absent and null are the same. Methods add an error for
/// a value of another kind or beyond its range, and return what an absent one
/// would give.
class Fields {
public:
  Fields(const JsonValue &jsonObject, std::string jsonPointer,
         Findings &allFindings)
      : findings(allFindings), object(jsonObject),
        pointer(std::move(jsonPointer)) {}

  Findings &findings;

  bool has(std::string_view key);
  /// Returns whether the key is there with the value null.
  bool isNull(std::string_view key);
  /// Returns the value, or null if absent, with an error if it is `required`.
  const JsonValue *value(std::string_view key, bool required = false);

  /// Returns a size in [1, limit], with an error if it is absent.
  std::optional<std::int64_t> size(std::string_view key,
                                   std::int64_t limit = kSizeLimit - 1);
  /// Returns a size, or nothing if it is absent.
  std::optional<std::int64_t> sizeIfAny(std::string_view key,
                                        std::int64_t limit = kSizeLimit - 1);
  /// Returns a number in [low, high).
  double number(std::string_view key, double fallback, double low, double high);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  /// Returns a string that must be there. It is empty only after an error.
  std::string name(std::string_view key);
  /// Returns an array of strings, which is empty if absent.
  std::vector<std::string> texts(std::string_view key, bool required = false);

  std::string at(std::string_view key) const {
    return base::childPointer(pointer, key);
  }
  const std::string &here() const { return pointer; }
  void error(std::string_view key, std::string_view what) {
    findings.error(at(key), what);
  }

  /// Marks keys that may be there and change nothing.
  void ignore(const std::vector<std::string> &keys);
  /// Returns the keys nobody asked for, in the order of the file.
  std::vector<std::string> unread() const;
  /// Adds one note that names all unread keys.
  void noteUnread();
  /// Adds an error for every unread key, with the nearest known one.
  void refuseUnread();

private:
  const JsonValue &object;
  std::string pointer;
  std::set<std::string, std::less<>> asked;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_FIELDS_H
