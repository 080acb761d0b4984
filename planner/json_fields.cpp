//===- json_fields.cpp - Reads an object and tells all that is wrong ------===//

#include "planner/json_fields.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

namespace mtplan::planner {

using nlohmann::json;

namespace {

// A number as a person would write it: 80, 0.5, 1e+06.
std::string written(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// A value short enough for a message.
std::string shown(const json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "an array";
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// Cost of reading `a` for `b`: 2 for another letter, 1 for another case.
std::size_t letterDistance(char a, char b) {
  if (a == b)
    return 0;
  auto lower = [](char c) {
    return std::tolower(static_cast<unsigned char>(c));
  };
  return lower(a) == lower(b) ? 1 : 2;
}

std::size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = 2 * j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = 2 * i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t above = row[j];
      row[j] = std::min({above + 2, row[j - 1] + 2,
                         diagonal + letterDistance(a[i - 1], b[j - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

} // namespace

std::string joinLines(const JsonErrors &errors) {
  std::string lines;
  for (const std::string &line : errors)
    lines += (lines.empty() ? "" : "\n") + line;
  return lines;
}

// The rule of runtime::nearestTo (runtime/plan/nearest_word.h): neither leaf
// can take it from the other; a test holds them together.
const std::string &nearestTo(const std::string &word,
                             const std::vector<std::string> &candidates) {
  assert(!candidates.empty());
  // A word of megabytes is near nothing; its beginning says as much.
  constexpr std::size_t kLongest = 64;
  std::string start = word.substr(0, kLongest);
  // Who typed the beginning of a long name meant that.
  return *std::ranges::min_element(candidates, {}, [&](const std::string &c) {
    return std::pair(!c.starts_with(start), editDistance(start, c));
  });
}

std::optional<double> readNumber(const json &value, const std::string &pointer,
                                 const NumberRange &range, JsonErrors &errors) {
  if (!value.is_number()) {
    errors.push_back(pointer + ": must be a number, got " + shown(value));
    return std::nullopt;
  }
  auto number = value.get<double>();
  // Written so that what is not a number is refused.
  bool inside = (range.above ? number > range.least : number >= range.least) &&
                number <= range.most;
  if (inside)
    return number;
  errors.push_back(pointer + ": must be " +
                   (range.above ? "above " : "at least ") +
                   written(range.least) + " and at most " +
                   written(range.most) + ", got " + shown(value));
  return std::nullopt;
}

std::optional<std::int64_t> readInteger(const json &value,
                                        const std::string &pointer,
                                        std::int64_t least, std::int64_t most,
                                        JsonErrors &errors) {
  bool fits =
      value.is_number_unsigned()
          ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
          : value.is_number_integer() && value.get<std::int64_t>() <= most;
  if (fits && value.get<std::int64_t>() >= least)
    return value.get<std::int64_t>();
  errors.push_back(pointer + ": must be a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most) +
                   ", got " + shown(value));
  return std::nullopt;
}

JsonFields::JsonFields(const json &value, std::string where, JsonErrors &notes)
    : object(value.is_object() ? &value : nullptr), pointer(std::move(where)),
      errors(notes) {
  if (!object)
    errors.push_back(pointer + ": must be an object, got " + shown(value));
}

const json *JsonFields::find(const std::string &key) {
  if (std::ranges::find(known, key) == known.end())
    known.push_back(key);
  if (!object)
    return nullptr;
  auto member = object->find(key);
  return member == object->end() ? nullptr : &*member;
}

const json *JsonFields::need(const std::string &key) {
  const json *member = find(key);
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
  const json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or(least);
  return readInteger(*member, pointerTo(key), least, most, errors)
      .value_or(least);
}

double JsonFields::number(const std::string &key, const NumberRange &range,
                          std::optional<double> fallback) {
  const json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or(range.least);
  return readNumber(*member, pointerTo(key), range, errors)
      .value_or(range.least);
}

bool JsonFields::boolean(const std::string &key, bool fallback) {
  const json *member = find(key);
  if (!member)
    return fallback;
  if (member->is_boolean())
    return member->get<bool>();
  fail(key, "must be true or false, got " + shown(*member));
  return fallback;
}

std::string JsonFields::text(const std::string &key,
                             const std::optional<std::string> &fallback) {
  const json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or("");
  if (member->is_string())
    return member->get<std::string>();
  fail(key, "must be a string, got " + shown(*member));
  return fallback.value_or("");
}

std::size_t JsonFields::oneOf(const std::string &key,
                              const std::vector<std::string> &names,
                              std::optional<std::size_t> fallback) {
  const json *member = fallback ? find(key) : need(key);
  if (!member)
    return fallback.value_or(0);
  if (member->is_string()) {
    auto name = std::ranges::find(names, member->get<std::string>());
    if (name != names.end())
      return static_cast<std::size_t>(name - names.begin());
  }
  std::string choices;
  for (const std::string &name : names)
    choices += (choices.empty() ? "\"" : ", \"") + name + '"';
  fail(key, "must be one of " + choices + ", got " + shown(*member));
  return fallback.value_or(0);
}

std::vector<std::pair<const json *, std::string>>
JsonFields::elements(const std::string &key, bool required) {
  std::vector<std::pair<const json *, std::string>> list;
  const json *member = required ? need(key) : find(key);
  if (!member)
    return list;
  if (!member->is_array()) {
    fail(key, "must be an array, got " + shown(*member));
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
  for (const auto &[key, value] : object->items())
    if (std::ranges::find(known, key) == known.end())
      fail(key, "unknown key; the nearest valid key is \"" +
                    nearestTo(key, known) + '"');
}

} // namespace mtplan::planner
