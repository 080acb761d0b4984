//===- text.cpp - Lines of a program --------------------------------------===//

#include "codegen/source/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace mtplan::codegen {
namespace {

constexpr std::size_t kColumns = 80;

/// Returns the keywords of C++20, which cannot be identifiers (ISO/IEC
/// 14882:2020, tables 5 and 6).
const std::set<std::string, std::less<>> &keywords() {
  static const std::set<std::string, std::less<>> kWords = {
      "alignas",       "alignof",     "and",
      "and_eq",        "asm",         "auto",
      "bitand",        "bitor",       "bool",
      "break",         "case",        "catch",
      "char",          "char8_t",     "char16_t",
      "char32_t",      "class",       "compl",
      "concept",       "const",       "const_cast",
      "consteval",     "constexpr",   "constinit",
      "continue",      "co_await",    "co_return",
      "co_yield",      "decltype",    "default",
      "delete",        "do",          "double",
      "dynamic_cast",  "else",        "enum",
      "explicit",      "export",      "extern",
      "false",         "float",       "for",
      "friend",        "goto",        "if",
      "inline",        "int",         "long",
      "mutable",       "namespace",   "new",
      "noexcept",      "not",         "not_eq",
      "nullptr",       "operator",    "or",
      "or_eq",         "private",     "protected",
      "public",        "register",    "reinterpret_cast",
      "requires",      "return",      "short",
      "signed",        "sizeof",      "static",
      "static_assert", "static_cast", "struct",
      "switch",        "template",    "this",
      "thread_local",  "throw",       "true",
      "try",           "typedef",     "typeid",
      "typename",      "union",       "unsigned",
      "using",         "virtual",     "void",
      "volatile",      "wchar_t",     "while",
      "xor",           "xor_eq"};
  return kWords;
}

} // namespace

bool Text::fits(const std::string &words) const {
  return 2 * depth + words.size() <= kColumns;
}

void Text::line(const std::string &words) {
  all.push_back({TextItem::Kind::line, depth, words});
}

void Text::event(const std::string &name, const std::string &value) {
  all.push_back({TextItem::Kind::line, depth,
                 "cudaEvent_t " + name + " = " + value + ";"});
  all.back().event = name;
}

void Text::comment(const std::string &words, const std::string &lead,
                   const std::string &summary) {
  all.push_back({TextItem::Kind::comment, depth, words, {}, lead, {}, summary});
}

void Text::call(const std::string &head,
                const std::vector<std::string> &arguments,
                const std::string &tail) {
  all.push_back({TextItem::Kind::call, depth, head, arguments, tail});
}

void Text::add(const Text &other, std::size_t levels) {
  for (TextItem item : other.all) {
    item.depth += levels;
    all.push_back(std::move(item));
  }
}

namespace {

void writeLine(std::size_t depth, const std::string &words, std::string &to) {
  if (!words.empty())
    to.append(2 * depth, ' ').append(words);
  to += '\n';
}

/// Returns the position of the last space at or before `width` that is not
/// inside a shape ("f32 [B, T]"). If there is no such space, returns the first
/// one after `width`.
std::size_t breakBefore(std::string_view words, std::size_t width) {
  std::size_t last = std::string_view::npos;
  int depth = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == '[')
      ++depth;
    if (words[i] == ']')
      --depth;
    const bool isType = words[i] == ' ' && i + 1 < words.size() &&
                        words[i + 1] == '['; // "f32 [B, T]"
    if (words[i] != ' ' || depth > 0 || isType)
      continue;
    if (i > width && last != std::string_view::npos)
      return last;
    last = i;
    if (i > width)
      return last;
  }
  return last == std::string_view::npos ? words.size() : last;
}

void writeComment(const TextItem &item, std::string &to) {
  const std::size_t width = kColumns - 2 * item.depth - 3 - item.end.size();
  std::string_view left = item.words;
  while (!left.empty()) {
    const std::size_t cut =
        left.size() > width ? breakBefore(left, width) : left.size();
    const bool isFirst = left.size() == item.words.size();
    writeLine(item.depth,
              "// " + (isFirst ? item.end : std::string(item.end.size(), ' ')) +
                  std::string(left.substr(0, cut)),
              to);
    left.remove_prefix(std::min(cut + 1, left.size()));
  }
}

/// Limits the positions at which an argument may be split. A position may be
/// inside at most `deepest` nested brackets and inside at most `braces` nested
/// braces.
struct Cuts {
  int deepest, braces;
};

/// Splits an argument after its commas, so that each part can be on its own
/// line. Commas in strings, and commas nested more deeply than `cuts` allows,
/// do not count.
std::vector<std::string> partsOf(const std::string &argument, Cuts cuts) {
  std::vector<std::string> parts;
  std::string part;
  bool isString = false;
  int depth = 0, braces = 0;
  for (std::size_t i = 0; i < argument.size(); ++i) {
    const char c = argument[i];
    if (c == '"' && (i == 0 || argument[i - 1] != '\\'))
      isString = !isString;
    if (!isString) {
      braces += (c == '{') - (c == '}');
      depth += (c == '{' || c == '(') - (c == '}' || c == ')');
    }
    if (c == ' ' && !isString && depth <= cuts.deepest &&
        braces <= cuts.braces && part.ends_with(',')) {
      parts.push_back(part);
      part.clear();
      continue;
    }
    part += c;
  }
  parts.push_back(part);
  return parts;
}

/// Lists the limits in the order in which they are tried. Lists in braces, such
/// as shapes, are split last.
constexpr Cuts kCuts[] = {{1, 0}, {2, 0}, {3, 0}, {1, 1}, {2, 2}, {3, 3}};

/// Splits an argument by the first limits with which all parts fit into `width`
/// columns. If there are no such limits, uses the last limits.
std::vector<std::string> partsOf(const std::string &argument,
                                 std::size_t width) {
  std::vector<std::string> parts;
  for (const Cuts cuts : kCuts) {
    parts = partsOf(argument, cuts);
    if (std::ranges::all_of(parts, [&](const std::string &part) {
          return part.size() <= width;
        }))
      break;
  }
  return parts;
}

bool fitWithoutLists(const std::vector<std::string> &arguments,
                     std::size_t width) {
  return std::ranges::all_of(arguments, [&](const std::string &argument) {
    return std::ranges::all_of(
        partsOf(argument, Cuts{3, 0}),
        [&](const std::string &part) { return part.size() <= width; });
  });
}

std::vector<std::string> withEnds(const std::vector<std::string> &arguments,
                                  const std::string &tail) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    all.push_back(arguments[i] + (i + 1 == arguments.size() ? tail : ","));
  return all;
}

void writeCall(const TextItem &item, std::string &to) {
  const std::string start =
      item.words.ends_with('{') ? item.words : item.words + "(";
  const std::vector<std::string> words = withEnds(item.arguments, item.end);
  // Aligns arguments with the first argument, unless too few columns are left.
  constexpr std::size_t kIndent = 4;
  const std::size_t own = 2 * item.depth;
  std::size_t whole = own + start.size();
  for (const std::string &word : words)
    whole += word.size() + 1;
  const bool isAligned =
      whole <= kColumns + 1 ||
      (own + start.size() <= kColumns / 2 &&
       (fitWithoutLists(words, kColumns - own - start.size()) ||
        !fitWithoutLists(words, kColumns - own - kIndent)));
  const std::size_t under = isAligned ? start.size() : kIndent;
  std::string row = start;
  bool isEmpty = true;
  const auto nextRow = [&] {
    writeLine(item.depth, row, to);
    row = std::string(under, ' ');
    isEmpty = true;
  };
  if (!isAligned && !words.empty())
    nextRow();
  const auto fits = [&](const std::string &one) {
    return own + row.size() + (isEmpty ? 0 : 1) + one.size() <= kColumns;
  };
  for (const std::string &argument : words) {
    if (!isEmpty && !fits(argument))
      nextRow();
    const std::vector<std::string> parts =
        fits(argument) ? std::vector<std::string>{argument}
                       : partsOf(argument, kColumns - own - under);
    for (const std::string &part : parts) {
      if (!isEmpty && !fits(part))
        nextRow();
      row += (isEmpty ? "" : " ") + part;
      isEmpty = false;
    }
  }
  writeLine(item.depth, words.empty() ? row + item.end : row, to);
}

} // namespace

std::string Text::text() const {
  std::string text;
  for (const TextItem &item : all)
    switch (item.kind) {
    case TextItem::Kind::line:
      writeLine(item.depth, item.words, text);
      break;
    case TextItem::Kind::comment:
      writeComment(item, text);
      break;
    case TextItem::Kind::call:
      writeCall(item, text);
      break;
    }
  return text;
}

void Text::callWithLists(const std::string &head, const std::string &first,
                         const std::vector<std::vector<std::string>> &lists,
                         const std::string &last) {
  std::string whole = head + "(" + first;
  for (const std::vector<std::string> &list : lists)
    whole += ", " + listText(list);
  if (!last.empty())
    whole += ", " + last;
  whole += ");";
  if (fits(whole))
    return line(whole);
  line(head + "(" + first + ",");
  ++depth, ++depth;
  for (std::size_t l = 0; l < lists.size(); ++l) {
    const bool isLast = l + 1 == lists.size() && last.empty();
    call("{", lists[l], isLast ? "});" : "},");
  }
  if (!last.empty())
    line(last + ");");
  --depth, --depth;
}

void Text::open(const std::string &words) {
  line(words);
  ++depth;
}

void Text::close(const std::string &words) {
  --depth;
  line(words);
}

std::string identifierFor(const std::string &name,
                          std::set<std::string> &taken) {
  std::string word;
  for (const char c : name) {
    const bool isPart = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9');
    if (isPart)
      word += c;
    else if (c != '*' && !word.empty() && word.back() != '_')
      word += '_';
  }
  while (!word.empty() && word.back() == '_')
    word.pop_back();
  if (word.empty() || (word[0] >= '0' && word[0] <= '9') ||
      keywords().contains(word))
    word = "the_" + word;
  std::string free = word;
  for (int i = 2; !taken.insert(free).second; ++i)
    free = word + "_" + std::to_string(i);
  return free;
}

bool isWordPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

MemberPieces piecesOf(const std::string &text) {
  MemberPieces pieces;
  std::size_t at = 0;
  for (std::size_t mark = text.find(kMembers); mark != std::string::npos;
       mark = text.find(kMembers, at)) {
    const std::size_t begin = mark + kMembers.size();
    std::size_t end = begin;
    while (end < text.size() && isWordPart(text[end]))
      ++end;
    pieces.texts.push_back(text.substr(at, mark - at));
    pieces.names.push_back(text.substr(begin, end - begin));
    at = end;
  }
  pieces.texts.push_back(text.substr(at));
  return pieces;
}

std::string quoted(const std::string &text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      all += '\\';
    all += c;
  }
  return all + '"';
}

std::string numberText(double value) {
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), end.ptr);
  if (text.find_first_of(".en") == std::string::npos)
    text += ".0";
  return text;
}

std::string listText(const std::vector<std::string> &items) {
  std::string text = "{";
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i > 0 ? ", " : "") + items[i];
  return text + "}";
}

namespace {

template <typename T> std::string numbersText(const std::vector<T> &items) {
  std::vector<std::string> words;
  words.reserve(items.size());
  for (const T item : items)
    words.push_back(std::to_string(item));
  return listText(words);
}

} // namespace

std::string listText(const std::vector<std::int64_t> &items) {
  return numbersText(items);
}
std::string listText(const std::vector<int> &items) {
  return numbersText(items);
}

} // namespace mtplan::codegen
