//===- text.h - Lines of a program ------------------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_TEXT_H
#define MTPLAN_CODEGEN_SOURCE_TEXT_H

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace mtplan::codegen {

/// Text of 80 columns, by lines.
class Text {
public:
  void line(const std::string &words = "");
  /// Wrapped, after "//".
  void comment(const std::string &words);
  /// `head(first, second, ...tail`, wrapped between arguments; a head may end
  /// in a brace instead.
  void call(const std::string &head, const std::vector<std::string> &arguments,
            const std::string &tail = ");");
  /// Opens braces: following lines are indented.
  void open(const std::string &words);
  void close(const std::string &words = "}");
  /// Ends the indentation of a statement without braces.
  void leave() { --depth; }

  /// Returns an empty text whose lines are indented like the next one here.
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

/// A name of the language for a name of the plan: "h.*.ln_1" is h_ln_1. Other
/// than all in `taken`, to which it is added.
std::string identifierFor(const std::string &name,
                          std::set<std::string> &taken);

std::string quoted(const std::string &text);
/// The shortest that reads back as the same, with a point.
std::string numberText(double value);
/// "{1, 2, 3}"
std::string listText(const std::vector<std::string> &items);
std::string listText(const std::vector<std::int64_t> &items);
std::string listText(const std::vector<int> &items);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TEXT_H
