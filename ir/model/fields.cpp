//===- fields.cpp - Typed access to a JSON object -------------------------===//

#include "ir/model/fields.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/nearest_word.h"

namespace mtplan::ir {

const JsonValue *JsonValue::find(std::string_view key) const {
  for (const auto &[name, value] : members)
    if (name == key)
      return &value;
  return nullptr;
}

std::string JsonValue::describe() const {
  switch (kind) {
  case Kind::null:
    return "null";
  case Kind::boolean:
    return boolean ? "true" : "false";
  case Kind::number:
    return "the number " +
           (integer ? std::to_string(*integer) : nlohmann::json(number).dump());
  case Kind::string:
    return string.size() > 60 ? "a string" : "the string \"" + string + '"';
  case Kind::array:
    return items.empty() ? "an empty array" : "an array";
  case Kind::object:
    return "an object";
  }
  return "";
}

namespace {

// Returns a JSON number as an int64, or nothing if the number is not whole, is
// out of range, or is a double beyond 2^53.
std::optional<std::int64_t> integerOf(const base::Json &json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      return static_cast<std::int64_t>(value);
    return std::nullopt;
  }
  if (json.is_number_integer())
    return json.get<std::int64_t>();
  constexpr double kExact = 9007199254740992.0;
  const auto value = json.get<double>();
  if (std::abs(value) <= kExact && std::trunc(value) == value)
    return static_cast<std::int64_t>(value);
  return std::nullopt;
}

// Converts a JSON tree. The recursion is at most kMaxJsonDepth deep.
JsonValue plainValue(const base::Json &json) {
  using Kind = JsonValue::Kind;
  JsonValue plain;
  if (json.is_boolean()) {
    plain.kind = Kind::boolean;
    plain.boolean = json.get<bool>();
  } else if (json.is_number()) {
    plain.kind = Kind::number;
    plain.number = json.get<double>();
    plain.integer = integerOf(json);
  } else if (json.is_string()) {
    plain.kind = Kind::string;
    plain.string = json.get<std::string>();
  } else if (json.is_array()) {
    plain.kind = Kind::array;
    plain.items.reserve(json.size());
    for (const base::Json &item : json)
      plain.items.push_back(plainValue(item));
  } else if (json.is_object()) {
    plain.kind = Kind::object;
    plain.members.reserve(json.size());
    for (const auto &[key, value] : json.items())
      plain.members.push_back({key, plainValue(value)});
  }
  return plain;
}

} // namespace

std::optional<JsonValue> parseJson(std::string_view text, std::string &error) {
  try {
    return plainValue(base::parseJson(
        text, {.depth = kMaxJsonDepth, .bytes = kMaxJsonBytes}));
  } catch (const base::JsonError &fault) {
    error = fault.what();
    return std::nullopt;
  }
}

void Findings::error(std::string_view pointer, std::string_view what) {
  std::string line = file + ": ";
  line.append(pointer).append(pointer.empty() ? "" : ": ").append(what);
  errors.push_back(std::move(line));
}

bool Findings::expectObject(const JsonValue &value, std::string_view pointer) {
  if (value.kind == JsonValue::Kind::object)
    return true;
  error(pointer, "must be an object, but is " + value.describe());
  return false;
}

std::string listOf(const std::vector<std::string> &names) {
  return base::listed(names, " and ");
}

std::string unknownName(std::string_view what, std::string_view word,
                        const std::vector<std::string> &names) {
  std::string shown(word.substr(0, 64));
  std::string text = "unknown ";
  text.append(what).append(" \"").append(shown).append("\"");
  if (!names.empty())
    text +=
        "; nearest first, known are " + listOf(base::nearestFirst(word, names));
  return text;
}

bool Fields::has(std::string_view key) { return value(key) != nullptr; }

bool Fields::isNull(std::string_view key) {
  asked.emplace(key);
  const JsonValue *found = object.find(key);
  return found && found->kind == JsonValue::Kind::null;
}

const JsonValue *Fields::value(std::string_view key, bool required) {
  asked.emplace(key);
  const JsonValue *found = object.find(key);
  if (found && found->kind == JsonValue::Kind::null)
    found = nullptr;
  if (!found && required)
    error(key, "is missing");
  return found;
}

std::optional<std::int64_t> Fields::size(std::string_view key,
                                         std::int64_t limit) {
  if (!value(key, /*required=*/true))
    return std::nullopt;
  return sizeIfAny(key, limit);
}

std::optional<std::int64_t> Fields::sizeIfAny(std::string_view key,
                                              std::int64_t limit) {
  const JsonValue *found = value(key);
  if (!found)
    return std::nullopt;
  if (found->kind == JsonValue::Kind::number && found->integer &&
      *found->integer >= 1 && *found->integer <= limit)
    return found->integer;
  error(key, "must be an integer from 1 to " + std::to_string(limit) +
                 ", but is " + found->describe());
  return std::nullopt;
}

double Fields::number(std::string_view key, double fallback, double low,
                      double high) {
  const JsonValue *found = value(key);
  if (!found)
    return fallback;
  if (found->kind == JsonValue::Kind::number && found->number >= low &&
      found->number < high)
    return found->number;
  error(key, "must be a number, at least " + base::written(low) +
                 " and below " + base::written(high) + ", but is " +
                 found->describe());
  return fallback;
}

bool Fields::flag(std::string_view key, bool fallback) {
  const JsonValue *found = value(key);
  if (!found)
    return fallback;
  if (found->kind == JsonValue::Kind::boolean)
    return found->boolean;
  error(key, "must be true or false, but is " + found->describe());
  return fallback;
}

std::string Fields::text(std::string_view key, std::string_view fallback) {
  const JsonValue *found = value(key);
  if (!found)
    return std::string(fallback);
  if (found->kind == JsonValue::Kind::string)
    return found->string;
  error(key, "must be a string, but is " + found->describe());
  return std::string(fallback);
}

std::string Fields::name(std::string_view key) {
  const JsonValue *found = value(key, /*required=*/true);
  if (!found)
    return "";
  if (found->kind == JsonValue::Kind::string && !found->string.empty())
    return found->string;
  error(key, "must be a string that is not empty, but is " + found->describe());
  return "";
}

std::vector<std::string> Fields::texts(std::string_view key, bool required) {
  const JsonValue *found = value(key, required);
  if (!found)
    return {};
  if (found->kind != JsonValue::Kind::array) {
    error(key, "must be an array of strings, but is " + found->describe());
    return {};
  }
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < found->items.size(); ++i) {
    const JsonValue &item = found->items[i];
    if (item.kind == JsonValue::Kind::string)
      strings.push_back(item.string);
    else
      findings.error(at(key) + '/' + std::to_string(i),
                     "must be a string, but is " + item.describe());
  }
  return strings;
}

void Fields::ignore(const std::vector<std::string> &keys) {
  asked.insert(keys.begin(), keys.end());
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> keys;
  for (const auto &[key, ignored] : object.members)
    if (asked.find(key) == asked.end())
      keys.push_back(key);
  return keys;
}

void Fields::noteUnread() {
  if (std::vector<std::string> keys = unread(); !keys.empty())
    findings.note("ignored: " + listOf(keys));
}

void Fields::rejectUnread() {
  std::vector<std::string> known(asked.begin(), asked.end());
  for (const std::string &key : unread())
    error(key, unknownName("key", key, known));
}

} // namespace mtplan::ir
