//===- text_scanner.cpp - Reads a short text from left to right -----------===//

#include "tools/exchange/text_scanner.h"

#include <cctype>

#include <fmt/format.h>

#include "base/nearest_word.h"

namespace mtplan::tools {

static constexpr std::size_t kLongestName = 256;

void TextScanner::skipBlanks() {
  while (position < text.size() &&
         std::isspace(static_cast<unsigned char>(text[position])))
    ++position;
}

void TextScanner::fail(const std::string &what) {
  if (message.empty())
    message = fmt::format("column {}: {}", position + 1, what);
}

bool TextScanner::accept(std::string_view token) {
  if (failed())
    return false;
  skipBlanks();
  if (text.compare(position, token.size(), token) != 0)
    return false;
  position += token.size();
  return true;
}

void TextScanner::expect(std::string_view token) {
  if (!accept(token))
    fail(fmt::format("expected \"{}\"", token));
}

std::string TextScanner::word() {
  std::string found;
  if (failed())
    return found;
  skipBlanks();
  while (position < text.size() && found.size() < kLongestName &&
         (std::isalnum(static_cast<unsigned char>(text[position])) ||
          text[position] == '_' || text[position] == '.'))
    found += text[position++];
  return found;
}

bool TextScanner::nextIsQuote() {
  if (failed())
    return false;
  skipBlanks();
  return position < text.size() &&
         (text[position] == '\'' || text[position] == '"');
}

std::string TextScanner::quoted() {
  if (!nextIsQuote()) {
    fail("expected a quoted name");
    return {};
  }
  char quote = text[position++];
  std::string name;
  while (position < text.size() && text[position] != quote) {
    if (text[position] == '\\' && position + 1 < text.size())
      ++position;
    if (name.size() == kLongestName) {
      fail(fmt::format("a name of more than {} letters", kLongestName));
      return {};
    }
    name += text[position++];
  }
  if (position == text.size())
    fail("the quote is not closed");
  else
    ++position;
  return name;
}

std::int64_t TextScanner::integer(std::int64_t least, std::int64_t most) {
  if (failed())
    return least;
  skipBlanks();
  std::int64_t value = 0;
  std::size_t start = position;
  bool negative = position < text.size() && text[position] == '-';
  position += negative ? 1 : 0;
  std::size_t digits = position;
  while (position < text.size() && position - digits < 18 &&
         std::isdigit(static_cast<unsigned char>(text[position])))
    value = value * 10 + (text[position++] - '0');
  if (negative)
    value = -value;
  if (position > digits && value >= least && value <= most)
    return value;
  position = start;
  fail(fmt::format("expected a whole number from {} to {}", least, most));
  return least;
}

void TextScanner::expectEnd() {
  if (failed())
    return;
  skipBlanks();
  if (position < text.size())
    fail("expected the end");
}

int AxisReader::next() {
  std::string name = scanner.quoted();
  if (scanner.failed())
    return 0;
  int axis = mesh.find(name);
  if (axis < 0) {
    scanner.fail(fmt::format("no axis \"{}\"; the mesh has {}",
                             name.substr(0, 60), axisNames(mesh)));
    return 0;
  }
  auto slot = static_cast<std::size_t>(axis);
  if (used[slot])
    scanner.fail(fmt::format("axis \"{}\" is used twice", name));
  used[slot] = true;
  return axis;
}

std::vector<int> AxisReader::list() {
  std::vector<int> axes;
  while (scanner.nextIsQuote()) {
    axes.push_back(next());
    if (!scanner.accept(","))
      break;
  }
  return axes;
}

std::string axisNames(const planner::Mesh &mesh) {
  std::vector<std::string> names;
  for (const planner::MeshAxis &axis : mesh.axes)
    names.push_back(axis.name);
  std::string text = base::listed(names, " and ");
  return text.empty() ? "none" : text;
}

std::string quotedName(const std::string &name, char quote) {
  std::string text(1, quote);
  for (char c : name) {
    if (c == quote || c == '\\')
      text += '\\';
    text += c;
  }
  return text + quote;
}

} // namespace mtplan::tools
