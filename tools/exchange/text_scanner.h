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

/// Keeps the first complaint and from then on takes nothing, so that a reader
/// need not ask after each step.
class TextScanner {
public:
  explicit TextScanner(const std::string &source) : text(source) {}

  /// Takes `token` if it comes next, after blanks.
  bool take(std::string_view token);
  /// Takes `token` or complains.
  void expect(std::string_view token);
  /// Letters, digits, `_` and `.`; empty if none come next.
  std::string word();
  /// Takes 'name' or "name"; complains if none comes next.
  std::string quoted();
  bool nextIsQuote();
  std::int64_t integer(std::int64_t least, std::int64_t most);
  void expectEnd();

  void fail(const std::string &what);
  bool failed() const { return !message.empty(); }
  /// "column 7: expected ...", or "".
  const std::string &error() const { return message; }

private:
  void skipBlanks();

  const std::string &text;
  std::size_t position = 0;
  std::string message;
};

/// Axes by name as they are read; complains of unknown ones and of those that
/// come twice.
class AxisReader {
public:
  AxisReader(TextScanner &reader, const planner::Mesh &axes)
      : scanner(reader), mesh(axes), used(axes.axes.size(), false) {}

  /// The axis of the quoted name that comes next; 0 if there is a complaint.
  int next();

private:
  TextScanner &scanner;
  const planner::Mesh &mesh;
  std::vector<bool> used;
};

/// "dp, tp and cp" of a mesh, for complaints.
std::string axisNames(const planner::Mesh &mesh);

/// `name` between quotes, `quote` and backslash within it escaped.
std::string quotedName(const std::string &name, char quote);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TEXT_SCANNER_H
