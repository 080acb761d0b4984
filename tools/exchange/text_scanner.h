//===- text_scanner.h - Reads a short text from left to right ---*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TEXT_SCANNER_H
#define MTPLAN_TOOLS_EXCHANGE_TEXT_SCANNER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/graph/layout.h"

namespace mtplan::tools {

/// Reads a text from left to right. After the first error, all methods do
/// nothing, so that callers need not check each step.
class TextScanner {
public:
  explicit TextScanner(const std::string &source) : text(source) {}

  /// Skips blanks, and reads `token` if it comes next.
  bool accept(std::string_view token);
  /// Reads `token`. Fails on any other text, and so do quoted(), integer() and
  /// expectEnd().
  void expect(std::string_view token);
  /// Reads letters, digits, `_` and `.`; returns "" if none come next.
  std::string word();
  /// Reads 'name' or "name".
  std::string quoted();
  bool nextIsQuote();
  std::int64_t integer(std::int64_t least, std::int64_t most);
  void expectEnd();

  void fail(const std::string &what);
  bool failed() const { return !message.empty(); }
  /// Returns "column 7: expected ...", or "".
  const std::string &error() const { return message; }

private:
  void skipBlanks();

  const std::string &text;
  std::size_t position = 0;
  std::string message;
};

/// Reads axes by name. Unknown and repeated axes are errors.
class AxisReader {
public:
  AxisReader(TextScanner &reader, const planner::Mesh &axes)
      : scanner(reader), mesh(axes), used(axes.axes.size(), false) {}

  /// Reads a quoted name and returns its axis; 0 on an error.
  int next();
  /// Reads any number of quoted names, separated by commas.
  std::vector<int> list();

private:
  TextScanner &scanner;
  const planner::Mesh &mesh;
  std::vector<bool> used;
};

/// Returns "dp, tp and cp", or "none", for messages.
std::string axisNames(const planner::Mesh &mesh);

/// Puts `name` in quotes, and escapes the quotes and backslashes of `name`.
std::string quotedName(const std::string &name, char quote);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TEXT_SCANNER_H
