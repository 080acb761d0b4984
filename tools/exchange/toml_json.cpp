//===- toml_json.cpp - The plain part of TOML, as JSON --------------------===//

#include "tools/exchange/toml_json.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mtplan::tools {

using nlohmann::json;

namespace {

constexpr int kMostDepth = 16;
constexpr std::size_t kMostErrors = 50;

class Parser {
public:
  Parser(const std::string &source, std::vector<std::string> &notes)
      : text(source), errors(notes) {}

  json run() {
    json root = json::object();
    json *section = &root;
    while (position < text.size() && failures < kMostErrors) {
      skip(true);
      if (position == text.size())
        break;
      fine = true;
      if (peek() == '[')
        section = header(root);
      else
        member(*section);
      skip(false);
      if (fine && position < text.size() && peek() != '\n')
        fail("expected the end of the line");
      while (position < text.size() && peek() != '\n')
        ++position;
    }
    return root;
  }

private:
  char peek() const { return position < text.size() ? text[position] : '\0'; }
  bool take(char c) {
    if (peek() != c || position == text.size())
      return false;
    ++position;
    return true;
  }
  void fail(const std::string &what) {
    if (fine && ++failures <= kMostErrors)
      errors.push_back(fmt::format("line {}: {}", line, what));
    fine = false;
  }

  // Blanks and comments; line ends too if `lines`.
  void skip(bool lines) {
    while (position < text.size()) {
      char c = peek();
      if (c == '#')
        while (position < text.size() && peek() != '\n')
          ++position;
      else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        line += c == '\n' ? 1 : 0;
        ++position;
      } else {
        break;
      }
    }
  }

  std::string key() {
    if (peek() == '"' || peek() == '\'')
      return quoted();
    std::string name;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' ||
           peek() == '-')
      name += text[position++];
    if (name.empty())
      fail("expected a name");
    return name;
  }

  json *header(json &root) {
    json *section = &root;
    take('[');
    if (peek() == '[')
      fail("arrays of sections are not read");
    for (int depth = 0; fine; ++depth) {
      skip(false);
      std::string name = key();
      if (depth == kMostDepth)
        fail(fmt::format("sections nested deeper than {} levels", kMostDepth));
      if (!fine)
        break;
      json &child = (*section)[name];
      if (!child.is_null() && !child.is_object())
        fail(fmt::format("\"{}\" is a value and a section", name));
      else if (child.is_null())
        child = json::object();
      if (!fine)
        break;
      section = &child;
      skip(false);
      if (!take('.'))
        break;
    }
    if (fine && !take(']'))
      fail("expected \"]\"");
    return section;
  }

  void member(json &section) {
    std::string name = key();
    skip(false);
    if (fine && !take('='))
      fail(peek() == '.' ? "dotted keys are not read; use a section"
                         : "expected \"=\"");
    if (!fine)
      return;
    skip(false);
    json read = value(0);
    if (!fine)
      return;
    if (section.contains(name))
      fail(fmt::format("\"{}\" is given twice", name));
    else
      section[name] = std::move(read);
  }

  json value(int depth) {
    if (peek() == '[')
      return array(depth);
    if (peek() == '"' || peek() == '\'')
      return quoted();
    std::string word;
    while (position < text.size() &&
           (std::isalnum(static_cast<unsigned char>(peek())) ||
            std::string("+-._").find(peek()) != std::string::npos))
      word += text[position++];
    if (word == "true" || word == "false")
      return word == "true";
    return number(word);
  }

  json number(const std::string &word) {
    std::string digits;
    std::ranges::copy_if(word, std::back_inserter(digits),
                         [](char c) { return c != '_'; });
    if (digits.starts_with("+"))
      digits.erase(0, 1);
    const char *begin = digits.data(), *end = begin + digits.size();
    std::int64_t whole = 0;
    if (auto [at, error] = std::from_chars(begin, end, whole);
        error == std::errc() && at == end)
      return whole;
    double real = 0;
    if (auto [at, error] = std::from_chars(begin, end, real);
        error == std::errc() && at == end && std::isfinite(real))
      return real;
    fail("expected a string, a number, true, false or an array of those");
    return nullptr;
  }

  json array(int depth) {
    json list = json::array();
    take('[');
    if (depth == kMostDepth)
      fail(fmt::format("arrays nested deeper than {} levels", kMostDepth));
    for (skip(true); fine && !take(']'); skip(true)) {
      list.push_back(value(depth + 1));
      skip(true);
      if (fine && !take(',') && peek() != ']')
        fail("expected \",\" or \"]\"");
    }
    return list;
  }

  std::string quoted() {
    char quote = text[position++];
    std::string word;
    if (text.compare(position, 2, std::string(2, quote)) == 0) {
      fail("strings of several lines are not read");
      return word;
    }
    while (position < text.size() && peek() != quote && peek() != '\n') {
      char c = text[position++];
      if (c == '\\' && quote == '"') {
        c = peek() == 'n' ? '\n' : peek() == 't' ? '\t' : peek();
        if (std::string("nt\"\\").find(peek()) == std::string::npos ||
            position == text.size()) {
          fail("an escape other than \\n \\t \\\" \\\\ is not read");
          return word;
        }
        ++position;
      }
      word += c;
    }
    if (!take(quote))
      fail("the quote is not closed");
    return word;
  }

  const std::string &text;
  std::vector<std::string> &errors;
  std::size_t position = 0, line = 1, failures = 0;
  bool fine = true; // nothing is wrong with this line yet
};

} // namespace

json parseToml(const std::string &text, std::vector<std::string> &errors) {
  return Parser(text, errors).run();
}

} // namespace mtplan::tools
