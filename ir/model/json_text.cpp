//===- json_text.cpp - A JSON value as plain members ------------*- C++ -*-===//

#include "ir/model/json_text.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

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

// Returns the whole number that a JSON number is, if an int64 holds it exactly.
std::optional<std::int64_t> integerOf(const base::Json &json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      return static_cast<std::int64_t>(value);
    return std::nullopt;
  }
  if (json.is_number_integer())
    return json.get<std::int64_t>();
  // Beyond 2^53 a double no longer tells neighbouring integers apart.
  constexpr double kExact = 9007199254740992.0;
  const auto value = json.get<double>();
  if (std::abs(value) <= kExact && std::trunc(value) == value)
    return static_cast<std::int64_t>(value);
  return std::nullopt;
}

// The depth of the call stack follows the depth of the text, which is limited.
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

} // namespace mtplan::ir
