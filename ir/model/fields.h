//===- fields.h - Typed access to a JSON object -----------------*- C++ -*-===//
//
// Reading a field also checks it. A required field that is missing, and any
// field that is mistyped or out of range, adds an error to Findings. Reading
// continues without the field, so that all violations of a file are reported at
// once.
//
// The readers of model files work on plain values, so that they need no JSON
// library. base/json_text.h parses the text. Keys keep the order of the file,
// so that the model built from a file is deterministic.
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

/// Holds one JSON value. `integer` is set if a number is whole, which includes
/// 12.0, as in JSON Schema. The members are in the order of the file.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0.0;
  std::optional<std::int64_t> integer;
  std::string string;
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;

  const JsonValue *find(std::string_view key) const;
  /// Returns the kind and, if the value is short, the value: `the number 17`.
  std::string describe() const;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

/// Parses `text`. On failure returns nothing and sets `error` to "line:column:
/// fault". For repeated keys, `error` has one line "/pointer: fault" per key.
std::optional<JsonValue> parseJson(std::string_view text, std::string &error);

/// All sizes are below this limit, so that a product of two sizes fits in an
/// int64.
inline constexpr std::int64_t kSizeLimit = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxLayers = 10'000;

struct Findings {
  std::string file;
  std::vector<std::string> errors, notes;

  void error(std::string_view pointer, std::string_view what);
  bool expectObject(const JsonValue &value, std::string_view pointer);
  void note(std::string_view what) { notes.emplace_back(what); }
};

std::string listOf(const std::vector<std::string> &names);
/// Returns a message such as
/// `unknown key "lyer_norm"; nearest first, known are layer_norm and ...`.
std::string unknownName(std::string_view what, std::string_view word,
                        const std::vector<std::string> &names);

/// Reads the fields of an object. A null counts as absent. For a value of the
/// wrong kind or out of range, a method adds an error and treats the field as
/// absent.
class Fields {
public:
  Fields(const JsonValue &jsonObject, std::string jsonPointer,
         Findings &allFindings)
      : findings(allFindings), object(jsonObject),
        pointer(std::move(jsonPointer)) {}

  Findings &findings;

  bool has(std::string_view key);
  bool isNull(std::string_view key);
  /// Returns the value, or null if it is absent. Adds an error if it is absent
  /// and `required`.
  const JsonValue *value(std::string_view key, bool required = false);

  /// Returns a size in [1, limit], and adds an error if it is absent.
  std::optional<std::int64_t> size(std::string_view key,
                                   std::int64_t limit = kSizeLimit - 1);
  std::optional<std::int64_t> sizeIfAny(std::string_view key,
                                        std::int64_t limit = kSizeLimit - 1);
  /// Returns a number in [low, high).
  double number(std::string_view key, double fallback, double low, double high);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  /// Returns a required string, which is empty only after an error.
  std::string name(std::string_view key);
  /// Returns the strings of an array, or none if the field is absent.
  std::vector<std::string> texts(std::string_view key, bool required = false);

  std::string at(std::string_view key) const {
    return base::childPointer(pointer, key);
  }
  const std::string &here() const { return pointer; }
  void error(std::string_view key, std::string_view what) {
    findings.error(at(key), what);
  }

  /// Marks keys that are allowed but have no effect.
  void ignore(const std::vector<std::string> &keys);
  std::vector<std::string> unread() const;
  void noteUnread();
  /// Adds an error for every unread key, with the known keys, nearest first.
  void rejectUnread();

private:
  const JsonValue &object;
  std::string pointer;
  std::set<std::string, std::less<>> asked;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_FIELDS_H
