//===- fields.h - Typed access to a JSON object -----------------*- C++ -*-===//
//
// Reading a field and judging it are one act here: what is missing, mistyped or
// out of range becomes a line of Findings, the reader goes on with nothing, and
// so all violations of a file are reported at once.
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

#include "base/json_pointer.h"
#include "ir/model/json_text.h"

namespace mtplan::ir {

/// Sizes are below this, so that a product of two fits in an int64.
inline constexpr std::int64_t kSizeLimit = std::int64_t{1} << 31;
inline constexpr std::int64_t kMaxLayers = 10'000;

/// What is to be said about one file.
struct Findings {
  std::string file;
  std::vector<std::string> errors, notes;

  void error(std::string_view pointer, std::string_view what);
  void note(std::string_view what) { notes.emplace_back(what); }
};

/// Joins names as "a, b and c".
std::string listOf(const std::vector<std::string> &names);
/// Writes `unknown key "lyer_norm"; nearest first, known are layer_norm and
/// ...`
std::string unknownName(std::string_view what, std::string_view word,
                        const std::vector<std::string> &names);

/// An object being read. Absent and null are the same.
class Fields {
public:
  Fields(const JsonValue &jsonObject, std::string jsonPointer,
         Findings &allFindings)
      : findings(allFindings), object(jsonObject),
        pointer(std::move(jsonPointer)) {}

  Findings &findings;

  bool has(std::string_view key);
  /// Whether the key is there with the value null.
  bool isNull(std::string_view key);
  /// The value, or null if absent; an error if absent and `required`.
  const JsonValue *value(std::string_view key, bool required = false);

  /// A size in [1, limit]; an error if absent.
  std::optional<std::int64_t> size(std::string_view key,
                                   std::int64_t limit = kSizeLimit - 1);
  /// A size, or nothing if absent.
  std::optional<std::int64_t> sizeIfAny(std::string_view key,
                                        std::int64_t limit = kSizeLimit - 1);
  /// A number in [low, high).
  double number(std::string_view key, double fallback, double low, double high);
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);
  /// A string that must be there; empty only after an error.
  std::string name(std::string_view key);
  /// Strings; empty if absent.
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
  /// Keys nobody asked for, in the order of the file.
  std::vector<std::string> unread() const;
  /// One note naming all unread keys.
  void noteUnread();
  /// An error for every unread key, with the nearest known one.
  void refuseUnread();

private:
  const JsonValue &object;
  std::string pointer;
  std::set<std::string, std::less<>> asked;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_FIELDS_H
