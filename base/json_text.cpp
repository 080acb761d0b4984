//===- json_text.cpp - JSON text, values and pointers ---------------------===//

#include "base/json_text.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json_events.h"
#include "base/json_fields.h"
#include "base/nearest_word.h"

namespace mtplan::base {

namespace {

constexpr std::size_t kMostRepeats = 100;

std::string lineAndColumn(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos
                                 ? before.size() + 1
                                 : before.size() - newline;
  return std::to_string(line) + ':' + std::to_string(column);
}

std::string pointerOf(const JsonPath &path) {
  std::string pointer;
  for (const JsonLevel &level : path)
    pointer = level.isArray ? childPointer(pointer, level.elements)
                            : childPointer(pointer, level.key);
  return pointer;
}

class TreeBuilder final : public JsonEvents {
public:
  explicit TreeBuilder(std::size_t theMostMembers)
      : mostMembers(theMostMembers) {}

  Json root;
  std::vector<std::string> repeated; ///< one message per repeated key

  void scalar(const JsonPath &path, const JsonScalar &value) override {
    add(path, valueOf(value));
  }
  void open(const JsonPath &path, bool isArray) override {
    stack.push_back(add(path, isArray ? Json::array() : Json::object()));
  }
  void close(const JsonPath &, bool) override { stack.pop_back(); }

  void repeatedKey(const JsonPath &path) override {
    if (repeated.size() < kMostRepeats)
      repeated.push_back(pointerOf(path) + ": the key is given twice");
  }

private:
  static Json valueOf(const JsonScalar &scalar) {
    switch (scalar.kind) {
    case JsonScalar::Kind::null:
      return nullptr;
    case JsonScalar::Kind::boolean:
      return scalar.boolean;
    case JsonScalar::Kind::whole:
      return scalar.whole;
    case JsonScalar::Kind::negative:
      return scalar.negative;
    case JsonScalar::Kind::real:
      return scalar.real;
    case JsonScalar::Kind::string:
      return std::string(scalar.text);
    }
    return nullptr;
  }

  Json *add(const JsonPath &path, Json value) {
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    Json &parent = *stack.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    if (parent.size() == mostMembers)
      throw JsonError(pointerOf(path), "an object has at most " +
                                           std::to_string(mostMembers) +
                                           " members");
    // No search for an equal key is needed: parseJson() fails on repeated keys.
    auto &members = parent.get_ref<Json::object_t &>();
    members.emplace_back(path.back().key, std::move(value));
    return &members.back().second;
  }

  const std::size_t mostMembers;
  std::vector<Json *> stack; // open containers, outermost first
};

} // namespace

Json parseJson(std::string_view text, const JsonLimits &limits) {
  if (text.size() > limits.bytes)
    throw JsonError("1:1", std::to_string(text.size()) + " bytes, limit " +
                               std::to_string(limits.bytes));
  TreeBuilder builder(limits.members);
  try {
    readJsonEvents(text, limits.depth, builder);
  } catch (const JsonTextFault &fault) {
    throw JsonError(lineAndColumn(text, fault.offset), fault.what());
  }
  if (builder.repeated.empty())
    return std::move(builder.root);
  throw JsonError(joinLines(builder.repeated));
}

//===----------------------------------------------------------------------===//
// Checks and messages for one value
//===----------------------------------------------------------------------===//

std::string written(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string described(const Json &value) {
  if (value.is_object())
    return "an object";
  if (value.is_array())
    return "an array";
  const std::string text =
      value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::optional<std::int64_t> wholeNumber(const Json &value, std::int64_t least,
                                        std::int64_t most) {
  // nlohmann/json stores non-negative integers as uint64. Integers above
  // INT64_MAX do not fit in the result.
  const bool isSigned =
      value.is_number_integer() &&
      (!value.is_number_unsigned() ||
       value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (!isSigned)
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most)
    return std::nullopt;
  return number;
}

std::string mustBe(std::string_view kind, const Json &value) {
  return "must be " + std::string(kind) + ", got " + described(value);
}

std::string mustBeWholeNumber(std::int64_t least, std::int64_t most,
                              const Json &value) {
  return mustBe("a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most),
                value);
}

std::string mustBeOneOf(std::span<const std::string_view> words,
                        const Json &value) {
  std::string list;
  for (const std::string_view word : words)
    ((list += list.empty() ? "one of \"" : ", \"") += word) += '"';
  std::string fault = mustBe(list, value);
  if (value.is_string())
    ((fault += "; the nearest is \"") +=
     nearestTo(value.get_ref<const std::string &>(), words)) += '"';
  return fault;
}

std::string unknownKey(std::string_view key,
                       std::span<const std::string_view> known) {
  return "unknown key; the nearest valid key is \"" +
         std::string(nearestTo(key, known)) + '"';
}

} // namespace mtplan::base
