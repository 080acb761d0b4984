//===- json_events.cpp - JSON text, event by event ------------------------===//

#include "base/json_events.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace mtplan::base {

namespace {

constexpr std::size_t kLongestShown = 80;
constexpr std::size_t kFirstShown = 4; // leading names of a shortened path

// Returns nlohmann's error message without the error number and the position.
// The message is truncated, because it quotes the last token, which may be the
// whole file.
std::string reasonOf(std::string what) {
  if (const std::size_t end = what.find("] "); end != std::string::npos)
    what.erase(0, end + 2);
  if (what.starts_with("parse error at"))
    if (const std::size_t end = what.find(": "); end != std::string::npos)
      what.erase(0, end + 2);
  constexpr std::size_t kLongest = 160;
  if (what.size() > kLongest)
    what = what.substr(0, kLongest) + "...";
  return "not JSON: " + what;
}

// Returns the offset and the text of the word around byte `at`. The parser
// reports "nan" at its second letter, so the word may begin before `at`.
std::pair<std::size_t, std::string_view> wordAt(std::string_view text,
                                                std::size_t at) {
  const auto isInWord = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+';
  };
  std::size_t first = std::min(at + 1, text.size());
  while (first > 0 && isInWord(text[first - 1]))
    --first;
  std::size_t last = first;
  while (last < text.size() && isInWord(text[last]))
    ++last;
  return {first, text.substr(first, last - first)};
}

bool isNoFiniteNumber(std::string_view word) {
  while (word.starts_with('-') || word.starts_with('+'))
    word.remove_prefix(1);
  return word == "NaN" || word == "Infinity" || word == "nan" || word == "inf";
}

std::size_t offsetOfDepth(std::string_view text, std::size_t mostDepth) {
  std::size_t depth = 0;
  bool isInString = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (isInString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        isInString = false;
    } else if (c == '"') {
      isInString = true;
    } else if (c == '[' || c == '{') {
      if (depth++ == mostDepth)
        return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return text.size();
}

// Holds the keys of one object. Most objects are small, and a linear search
// through a few keys is faster than a tree.
class Keys {
public:
  void clear() {
    few.clear();
    many.clear();
  }
  bool add(const std::string &key) {
    constexpr std::size_t kFew = 16;
    if (std::ranges::find(few, key) != few.end())
      return false;
    if (few.size() == kFew)
      return many.insert(key).second;
    few.push_back(key);
    return true;
  }

private:
  std::vector<std::string> few;
  std::set<std::string> many; // used once `few` is full
};

// Checks the parser's events for depth and repeated keys, and forwards them to
// `events`.
class Watch final : public nlohmann::json_sax<Json> {
public:
  Watch(std::string_view theText, std::size_t theMostDepth,
        JsonEvents &theEvents)
      : text(theText), mostDepth(theMostDepth), events(theEvents) {}

  using Kind = JsonScalar::Kind;
  bool null() override { return scalar({.kind = Kind::null}); }
  bool boolean(bool value) override {
    return scalar({.kind = Kind::boolean, .boolean = value});
  }
  bool number_integer(std::int64_t value) override {
    return scalar({.kind = Kind::negative, .negative = value});
  }
  bool number_unsigned(std::uint64_t value) override {
    return scalar({.kind = Kind::whole, .whole = value});
  }
  bool number_float(double value, const std::string &spelling) override {
    return scalar({.kind = Kind::real, .real = value, .text = spelling});
  }
  bool string(std::string &value) override {
    return scalar({.kind = Kind::string, .text = value});
  }
  bool binary(Json::binary_t &) override { return false; } // never in JSON text

  bool start_object(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }

  bool key(std::string &name) override {
    const bool isNew = keys[path.size() - 1].add(name);
    path.back().key = std::move(name);
    if (!isNew)
      events.repeatedKey(path);
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    // `position` is the number of bytes read, the faulty one included.
    const std::size_t offset = position == 0 ? 0 : position - 1;
    if (const auto [start, word] = wordAt(text, offset); isNoFiniteNumber(word))
      throw JsonTextFault(start, std::string(word) +
                                     " is not a number that JSON can hold");
    throw JsonTextFault(offset, reasonOf(error.what()));
  }

private:
  bool scalar(const JsonScalar &value) {
    events.scalar(path, value);
    return countElement();
  }

  bool open(bool isArray) {
    if (path.size() == mostDepth)
      throw JsonTextFault(offsetOfDepth(text, mostDepth),
                          "nested deeper than " + std::to_string(mostDepth) +
                              " levels");
    events.open(path, isArray);
    path.push_back({isArray, {}, 0});
    if (keys.size() < path.size())
      keys.emplace_back();
    keys[path.size() - 1].clear();
    return true;
  }

  bool close() {
    const bool isArray = path.back().isArray;
    path.pop_back();
    events.close(path, isArray);
    return countElement();
  }

  bool countElement() {
    if (!path.empty())
      ++path.back().elements;
    return true;
  }

  const std::string_view text;
  const std::size_t mostDepth;
  JsonEvents &events;
  JsonPath path;
  std::vector<Keys> keys; // one per open container; reused later
};

} // namespace

void JsonEvents::repeatedKey(const JsonPath &path) {
  throw JsonError(shown(path), "the key is given twice");
}

void readJsonEvents(std::string_view text, std::size_t mostDepth,
                    JsonEvents &events) {
  // nlohmann/json treats a zero byte as the end of its input.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw JsonTextFault(zero, "not JSON: a zero byte");
  Watch watch(text, mostDepth, events);
  Json::sax_parse(text.begin(), text.end(), &watch);
}

std::string shown(std::string_view text) {
  const bool isCut = text.size() > kLongestShown;
  std::string line = Json(std::string(text.substr(0, kLongestShown)))
                         .dump(-1, ' ', false, Json::error_handler_t::replace);
  line = line.substr(1, line.size() - 2);
  return isCut ? line + "..." : line;
}

std::string shown(const JsonPath &path) {
  std::string pointer;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const JsonLevel &level = path[i];
    if (i >= kFirstShown && i + 1 < path.size())
      pointer += i == kFirstShown ? "/..." : "";
    else
      pointer += '/' + (level.isArray ? std::to_string(level.elements)
                                      : shown(level.key));
  }
  return pointer;
}

std::string spelled(const JsonScalar &value) {
  switch (value.kind) {
  case JsonScalar::Kind::null:
    return "null";
  case JsonScalar::Kind::boolean:
    return value.boolean ? "true" : "false";
  case JsonScalar::Kind::whole:
    return std::to_string(value.whole);
  case JsonScalar::Kind::negative:
    return value.negative == 0 ? "-0" : std::to_string(value.negative);
  case JsonScalar::Kind::real:
  case JsonScalar::Kind::string:
    return std::string(value.text);
  }
  return "";
}

std::string shown(const JsonScalar &value) {
  if (value.kind == JsonScalar::Kind::string)
    return "the text '" + shown(value.text) + "'";
  return shown(spelled(value));
}

std::string jsonString(std::string_view text, JsonEscapes escapes) {
  try {
    return Json(text).dump(-1, ' ', escapes == JsonEscapes::ascii);
  } catch (const Json::type_error &) {
    throw std::invalid_argument("'" + shown(text) + "' is not UTF-8");
  }
}

} // namespace mtplan::base
