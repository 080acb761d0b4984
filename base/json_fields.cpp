//===- json_fields.cpp - Reads an object and reports all faults -----------===//

#include "base/json_fields.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace mtplan::base {

std::string joinLines(const JsonErrors &errors) {
  std::string lines;
  for (const std::string &line : errors)
    lines += (lines.empty() ? "" : "\n") + line;
  return lines;
}

std::optional<double> readNumber(const Json &value, const std::string &pointer,
                                 const NumberRange &range, JsonErrors &errors) {
  if (!value.is_number()) {
    errors.push_back(pointer + ": " + mustBe("a number", value));
    return std::nullopt;
  }
  auto number = value.get<double>();
  // NaN fails every comparison and is therefore rejected.
  bool inside = (range.above ? number > range.least : number >= range.least) &&
                number <= range.most;
  if (inside)
    return number;
  errors.push_back(pointer + ": must be " +
                   (range.above ? "above " : "at least ") +
                   written(range.least) + " and at most " +
                   written(range.most) + ", got " + described(value));
  return std::nullopt;
}

std::optional<std::int64_t> readInteger(const Json &value,
                                        const std::string &pointer,
                                        std::int64_t least, std::int64_t most,
                                        JsonErrors &errors) {
  const std::optional<std::int64_t> number = wholeNumber(value, least, most);
  if (!number)
    errors.push_back(pointer + ": " + mustBeWholeNumber(least, most, value));
  return number;
}

JsonFields::JsonFields(const Json &value, std::string where, JsonErrors &notes)
    : object(value.is_object() ? &value : nullptr), pointer(std::move(where)),
      errors(notes) {
  if (!object)
    errors.push_back(pointer + ": " + mustBe("an object", value));
}

const Json *JsonFields::find(const std::string &key) {
  if (std::ranges::find(known, key) == known.end())
    known.push_back(key);
  if (!object)
    return nullptr;
  auto member = object->find(key);
  return member == object->end() ? nullptr : &*member;
}

const Json *JsonFields::need(const std::string &key) {
  const Json *member = find(key);
  if (!member && object)
    fail(key, "is missing");
  return member;
}

std::string JsonFields::pointerTo(const std::string &key) const {
  return childPointer(pointer, key);
}

void JsonFields::fail(const std::string &key, const std::string &what) {
  errors.push_back(pointerTo(key) + ": " + what);
}

std::int64_t JsonFields::integer(const std::string &key, std::int64_t least,
                                 std::int64_t most,
                                 std::optional<std::int64_t> fallback) {
  const Json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or(least);
  return readInteger(*member, pointerTo(key), least, most, errors)
      .value_or(least);
}

double JsonFields::number(const std::string &key, const NumberRange &range,
                          std::optional<double> fallback) {
  const Json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or(range.least);
  return readNumber(*member, pointerTo(key), range, errors)
      .value_or(range.least);
}

bool JsonFields::boolean(const std::string &key, bool fallback) {
  const Json *member = find(key);
  if (!member)
    return fallback;
  if (member->is_boolean())
    return member->get<bool>();
  fail(key, mustBe("true or false", *member));
  return fallback;
}

std::string JsonFields::text(const std::string &key,
                             const std::optional<std::string> &fallback) {
  const Json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or("");
  if (member->is_string())
    return member->get<std::string>();
  fail(key, mustBe("a string", *member));
  return fallback.value_or("");
}

std::size_t JsonFields::oneOf(const std::string &key,
                              const std::vector<std::string> &names,
                              std::optional<std::size_t> fallback) {
  const Json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or(0);
  if (member->is_string()) {
    auto name = std::ranges::find(names, member->get<std::string>());
    if (name != names.end())
      return static_cast<std::size_t>(name - names.begin());
  }
  const std::vector<std::string_view> words(names.begin(), names.end());
  fail(key, mustBeOneOf(words, *member));
  return fallback.value_or(0);
}

std::vector<std::pair<const Json *, std::string>>
JsonFields::elements(const std::string &key, bool required) {
  std::vector<std::pair<const Json *, std::string>> list;
  const Json *member = required ? need(key) : find(key);
  if (!member)
    return list;
  if (!member->is_array()) {
    fail(key, mustBe("an array", *member));
    return list;
  }
  for (std::size_t i = 0; i < member->size(); ++i)
    list.emplace_back(&(*member)[i], childPointer(pointerTo(key), i));
  return list;
}

std::vector<std::int64_t> JsonFields::integers(const std::string &key,
                                               std::int64_t least,
                                               std::int64_t most,
                                               bool required) {
  std::vector<std::int64_t> list;
  for (const auto &[value, where] : elements(key, required))
    list.push_back(
        readInteger(*value, where, least, most, errors).value_or(least));
  return list;
}

void JsonFields::rejectOthers() {
  if (!object)
    return;
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const auto &[key, value] : object->items())
    if (std::ranges::find(names, key) == names.end())
      fail(key, unknownKey(key, names));
}

} // namespace mtplan::base
