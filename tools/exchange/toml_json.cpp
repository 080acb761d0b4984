//===- toml_json.cpp - TOML as JSON ---------------------------------------===//

#include "tools/exchange/toml_json.h"

#include <cmath>
#include <string_view>

#include <toml++/toml.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mtplan::tools {

using json = base::Json;

namespace {

void fail(const toml::source_region &where, const std::string &what,
          std::vector<std::string> &errors) {
  constexpr std::size_t kMostErrors = 50;
  if (errors.size() < kMostErrors)
    errors.push_back(fmt::format("line {}: {}", where.begin.line, what));
}

// Returns the first line with a dotted key of more than 32 parts, or 0. The
// library limits the depth of values but not of keys, and it frees tables
// recursively. Dots in texts are counted too, which harms no file: a separator
// starts the count anew, and a row of dots counts once.
std::size_t lineTooDeep(const std::string &text) {
  constexpr int kMostDots = 31;
  std::size_t line = 1;
  int dots = 0;
  char before = '\0';
  for (const char c : text) {
    if (c == '.' && before != '.' && ++dots > kMostDots)
      return line;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos)
      dots = 0;
    line += c == '\n' ? 1 : 0;
    before = c;
  }
  return 0;
}

json jsonOf(const toml::node &node, std::vector<std::string> &errors) {
  if (const toml::table *table = node.as_table()) {
    json object = json::object();
    for (const auto &[key, value] : *table)
      object[std::string(key.str())] = jsonOf(value, errors);
    return object;
  }
  if (const toml::array *array = node.as_array()) {
    json list = json::array();
    for (const toml::node &element : *array)
      list.push_back(jsonOf(element, errors));
    return list;
  }
  if (const auto *text = node.as_string())
    return text->get();
  if (const auto *number = node.as_integer())
    return number->get();
  if (const auto *flag = node.as_boolean())
    return flag->get();
  if (const auto *number = node.as_floating_point();
      number && std::isfinite(number->get()))
    return number->get();
  fail(node.source(),
       "expected a string, a number, true, false, an array or a table", errors);
  return nullptr;
}

} // namespace

json parseToml(const std::string &text, std::vector<std::string> &errors) {
  if (const std::size_t line = lineTooDeep(text)) {
    errors.push_back(
        fmt::format("line {}: a key has more than 32 parts", line));
    return json::object();
  }
  try {
    return jsonOf(toml::parse(text), errors);
  } catch (const toml::parse_error &error) {
    fail(error.source(), std::string(error.description()), errors);
  }
  return json::object();
}

} // namespace mtplan::tools
