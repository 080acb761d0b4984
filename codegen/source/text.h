//===- text.h - Lines of a program ------------------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_TEXT_H
#define MTPLAN_CODEGEN_SOURCE_TEXT_H

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace mtplan::codegen {

/// Holds the text of a program. Comments and calls are wrapped at 80 columns.
class Text {
public:
  void line(const std::string &words = "");
  /// Returns whether a line of these words has at most 80 columns.
  bool fits(const std::string &words) const;
  /// Appends a comment, wrapped into lines that begin with "//". The first line
  /// begins with `lead`, and the others are indented by the length of `lead`.
  void comment(const std::string &words, const std::string &lead = "");
  /// Appends a call `head(first, second, ...tail`, wrapped between arguments. A
  /// head that ends in a brace is followed by no parenthesis.
  void call(const std::string &head, const std::vector<std::string> &arguments,
            const std::string &tail = ");");
  /// Appends a call `head(first, {list}, {list});`. If the call is longer than
  /// a line, each list begins a line.
  void callWithLists(const std::string &head, const std::string &first,
                     const std::vector<std::vector<std::string>> &lists,
                     const std::string &last = "");
  /// Appends a line, and indents the lines after it.
  void open(const std::string &words);
  void close(const std::string &words = "}");
  /// Ends the indentation without a closing brace.
  void leave() { --depth; }

  /// Returns an empty text with the current indentation.
  Text nested() const {
    Text text;
    text.depth = depth;
    return text;
  }
  /// Appends the lines of another text.
  void add(const Text &other) { all += other.all; }

  const std::string &text() const { return all; }

private:
  std::string all;
  std::size_t depth = 0;
};

/// Returns a C++ identifier for a name of the plan: h_ln_1 for "h.*.ln_1". The
/// identifier is not in `taken`, and is added to it.
std::string identifierFor(const std::string &name,
                          std::set<std::string> &taken);

std::string quoted(const std::string &text);
/// Returns `value` as a C++ literal of type double (1.0, 0.1, 1e-05) with as
/// few digits as determine the value exactly.
std::string numberText(double value);
/// Returns a list in braces: "{1, 2, 3}".
std::string listText(const std::vector<std::string> &items);
std::string listText(const std::vector<std::int64_t> &items);
std::string listText(const std::vector<int> &items);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TEXT_H
