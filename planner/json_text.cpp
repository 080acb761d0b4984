//===- json_text.cpp - Text that claims to be JSON ------------------------===//

#include "planner/json_text.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/json_pointer.h"

namespace mtplan::planner {

namespace {

using nlohmann::json;

// Keys given twice that are told one by one.
constexpr std::size_t kMostRepeats = 100;

// "line:column" of the byte at `offset`, both counted from 1.
std::string placeOf(const std::string &text, std::size_t offset) {
  offset = std::min(offset, text.size());
  auto end = text.begin() + static_cast<std::ptrdiff_t>(offset);
  auto line = 1 + std::count(text.begin(), end, '\n');
  std::size_t newline =
      offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  std::size_t column =
      newline == std::string::npos ? offset + 1 : offset - newline;
  return std::to_string(line) + ':' + std::to_string(column);
}

// Looks at brackets alone, so that no parser ever sees a text that is too deep.
void checkDepth(const std::string &text) {
  int depth = 0;
  bool inString = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth)
        throw JsonTextError(placeOf(text, i) + ": nested deeper than " +
                            std::to_string(kMaxJsonDepth) + " levels");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

// Builds the value and notes keys that come twice.
class Builder : public nlohmann::json_sax<json> {
public:
  explicit Builder(const std::string &source) : text(source) {}

  json root;
  std::string error;
  std::vector<std::string> repeated;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return add(value);
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return false; } // not in JSON text
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &name) override {
    if (stack.back().value->contains(name) && repeated.size() < kMostRepeats)
      repeated.push_back(childPointer(pointer(), name) +
                         ": the key is given twice");
    stack.back().key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &exception) override {
    error = placeOf(text, position == 0 ? 0 : position - 1) + ": " +
            reasonOf(exception.what());
    return false;
  }

private:
  struct Open {
    json *value;
    std::string key; // of the child being read, if an object
  };

  // The library's sentence without its number and its own idea of the place.
  static std::string reasonOf(std::string what) {
    if (std::size_t end = what.find("] "); end != std::string::npos)
      what.erase(0, end + 2);
    if (what.starts_with("parse error at"))
      if (std::size_t end = what.find(": "); end != std::string::npos)
        what.erase(0, end + 2);
    constexpr std::size_t kLongest = 160;
    if (what.size() > kLongest)
      what = what.substr(0, kLongest) + "...";
    return what;
  }

  json *place(json value) {
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    Open &parent = stack.back();
    if (parent.value->is_array()) {
      parent.value->push_back(std::move(value));
      return &parent.value->back();
    }
    return &((*parent.value)[parent.key] = std::move(value));
  }
  bool add(json value) {
    place(std::move(value));
    return true;
  }
  bool open(json value) {
    stack.push_back({place(std::move(value)), {}});
    return true;
  }
  bool close() {
    stack.pop_back();
    return true;
  }

  std::string pointer() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < stack.size(); ++i)
      path = stack[i].value->is_array()
                 ? childPointer(path, stack[i].value->size() - 1)
                 : childPointer(path, stack[i].key);
    return path;
  }

  const std::string &text;
  std::vector<Open> stack;
};

} // namespace

json parseJsonText(const std::string &text) {
  checkDepth(text);
  Builder builder(text);
  bool parsed = json::sax_parse(text, &builder);
  if (!parsed)
    throw JsonTextError(builder.error);
  if (builder.repeated.empty())
    return std::move(builder.root);
  std::string lines;
  for (const std::string &line : builder.repeated)
    lines += (lines.empty() ? "" : "\n") + line;
  throw JsonTextError(lines);
}

} // namespace mtplan::planner
