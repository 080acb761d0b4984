//===- json_text.cpp - JSON that says where it is wrong ---------*- C++ -*-===//
//
// The grammar is nlohmann's; the positions, the limits and the words are ours.
//
//===----------------------------------------------------------------------===//

#include "ir/model/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

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

std::string pointerToken(std::string_view key) {
  std::string token;
  for (char c : key) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

namespace {

std::string lineAndColumn(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  std::size_t line = 1, start = 0;
  for (std::size_t i = 0; i < offset; ++i)
    if (text[i] == '\n') {
      ++line;
      start = i + 1;
    }
  return std::to_string(line) + ':' + std::to_string(offset - start + 1);
}

// Offset of the first character of the word that ends before `end`, and the
// whole word: a parser stops at the second letter of NaN.
std::pair<std::size_t, std::string_view> wordAt(std::string_view text,
                                                std::size_t end) {
  auto inWord = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+';
  };
  std::size_t first = std::min(end, text.size());
  while (first > 0 && inWord(text[first - 1]))
    --first;
  std::size_t last = first;
  while (last < text.size() && inWord(text[last]))
    ++last;
  return {first, text.substr(first, last - first)};
}

// Builds the value while it is parsed and stops at the first violation.
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit ValueBuilder(std::string_view allText) : text(allText) {}

  JsonValue root;
  std::string error;

  bool null() override { return put({}); }
  bool boolean(bool value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::boolean;
    v.boolean = value;
    return put(std::move(v));
  }
  bool number_integer(number_integer_t value) override {
    JsonValue v = numberValue(static_cast<double>(value));
    v.integer = value;
    return put(std::move(v));
  }
  bool number_unsigned(number_unsigned_t value) override {
    JsonValue v = numberValue(static_cast<double>(value));
    if (value <= static_cast<number_unsigned_t>(
                     std::numeric_limits<std::int64_t>::max()))
      v.integer = static_cast<std::int64_t>(value);
    return put(std::move(v));
  }
  bool number_float(number_float_t value, const string_t &) override {
    // Beyond 2^53 a double no longer tells neighbouring integers apart.
    constexpr double kExact = 9007199254740992.0;
    JsonValue v = numberValue(value);
    if (std::abs(value) <= kExact && std::trunc(value) == value)
      v.integer = static_cast<std::int64_t>(value);
    return put(std::move(v));
  }
  bool string(string_t &value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::string;
    v.string = std::move(value);
    return put(std::move(v));
  }
  bool binary(binary_t &) override { return false; }

  bool start_object(std::size_t) override {
    return open(JsonValue::Kind::object);
  }
  bool start_array(std::size_t) override {
    return open(JsonValue::Kind::array);
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    if (!seen.back().insert(name).second) {
      error = pointer() + '/' + pointerToken(name) + ": the key appears twice";
      return false;
    }
    keys.back() = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &problem) override {
    // The position counts characters read; the last of them is the culprit.
    std::size_t offset = position > 0 ? position - 1 : 0;
    auto [wordStart, word] = wordAt(text, offset + 1);
    std::string_view bare = word;
    while (!bare.empty() && (bare.front() == '-' || bare.front() == '+'))
      bare.remove_prefix(1);
    if (bare == "NaN" || bare == "Infinity" || bare == "nan" || bare == "inf") {
      error = lineAndColumn(text, wordStart) + ": " + std::string(word) +
              " is not a number that JSON can hold";
      return false;
    }
    error = lineAndColumn(text, offset) + ": " + reason(problem.what());
    return false;
  }

private:
  std::string_view text;
  std::vector<JsonValue> stack;            // containers that are open
  std::vector<std::string> keys;           // of each: the key being filled in
  std::vector<std::set<std::string>> seen; // of each: its keys so far

  static JsonValue numberValue(double value) {
    JsonValue v;
    v.kind = JsonValue::Kind::number;
    v.number = value;
    return v;
  }

  // nlohmann's message without its own prefix and position.
  static std::string reason(std::string_view message) {
    for (std::string_view mark : {"syntax error ", "number overflow "})
      if (std::size_t at = message.find(mark); at != message.npos)
        return "not JSON: " + std::string(message.substr(at));
    if (std::size_t at = message.rfind("] "); at != message.npos)
      message = message.substr(at + 2);
    return "not JSON: " + std::string(message);
  }

  std::string pointer() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < stack.size(); ++i)
      path += '/' + (stack[i].kind == JsonValue::Kind::array
                         ? std::to_string(stack[i].items.size())
                         : pointerToken(keys[i]));
    return path;
  }

  bool put(JsonValue value) {
    if (stack.empty())
      root = std::move(value);
    else if (stack.back().kind == JsonValue::Kind::array)
      stack.back().items.push_back(std::move(value));
    else
      stack.back().members.push_back(
          {std::move(keys.back()), std::move(value)});
    return true;
  }

  bool open(JsonValue::Kind kind) {
    if (stack.size() == kMaxJsonDepth) {
      error = "1:1: nested more than " + std::to_string(kMaxJsonDepth) +
              " levels deep";
      return false;
    }
    stack.emplace_back();
    stack.back().kind = kind;
    keys.emplace_back();
    seen.emplace_back();
    return true;
  }

  bool close() {
    JsonValue done = std::move(stack.back());
    stack.pop_back();
    keys.pop_back();
    seen.pop_back();
    return put(std::move(done));
  }
};

} // namespace

std::optional<JsonValue> parseJson(std::string_view text, std::string &error) {
  if (text.size() > kMaxJsonBytes) {
    error = "1:1: " + std::to_string(text.size()) + " bytes, limit " +
            std::to_string(kMaxJsonBytes);
    return std::nullopt;
  }
  ValueBuilder builder(text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    error = builder.error.empty() ? "1:1: not JSON" : builder.error;
    return std::nullopt;
  }
  return std::move(builder.root);
}

} // namespace mtplan::ir
