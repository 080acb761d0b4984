//===- text.h - Lines of a program ------------------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_TEXT_H
#define MTPLAN_CODEGEN_SOURCE_TEXT_H

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::codegen {

/// Holds one item of a text: a line, a comment or a call.
struct TextItem {
  enum class Kind { line, comment, call };
  Kind kind = Kind::line;
  std::size_t depth = 0; ///< levels of indentation
  std::string words;     ///< the line, the comment, or the head of the call
  std::vector<std::string> arguments = {}; ///< of a call
  std::string end = {};   ///< the lead of a comment, or the tail of a call
  std::string event = {}; ///< the name of the event that a line declares
  /// If a comment describes a call, says in a few words what the call does:
  /// "reduce_scatter over dp".
  std::string summary = {};
};

/// Holds the text of a program. Comments and calls are wrapped at 80 columns.
class Text {
public:
  Text() = default;
  /// Makes an empty text that is indented by `theDepth` levels.
  explicit Text(std::size_t theDepth) : depth(theDepth) {}

  void line(const std::string &words = "");
  /// Appends the declaration of an event: `cudaEvent_t name = value;`.
  void event(const std::string &name, const std::string &value);
  /// Returns whether a line of these words has at most 80 columns.
  bool fits(const std::string &words) const;
  /// Appends a comment, wrapped into lines that begin with "//". The first line
  /// begins with `lead`, and the others are indented by the length of `lead`.
  void comment(const std::string &words, const std::string &lead = "",
               const std::string &summary = "");
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
  Text nested() const { return Text(depth); }
  /// Appends the lines of another text, with their own indentation and
  /// `levels` more levels.
  void add(const Text &other, std::size_t levels = 0);
  void add(TextItem item) { all.push_back(std::move(item)); }

  const std::vector<TextItem> &items() const { return all; }
  std::string text() const;

private:
  std::vector<TextItem> all;
  std::size_t depth = 0;
};

/// Returns a C++ identifier for a name of the plan: h_ln_1 for "h.*.ln_1". The
/// identifier is not in `taken`, and is added to it.
std::string identifierFor(const std::string &name,
                          std::set<std::string> &taken);

/// Returns whether a character can be part of an identifier.
bool isWordPart(char c);

/// Holds the names of members of struct `buf` in a text, in order of use, and
/// the text around them.
struct MemberPieces {
  std::vector<std::string> texts, names; ///< one text more than names
};
inline const std::string kMembers = "buf::"; ///< precedes the name of a member
MemberPieces piecesOf(const std::string &text);

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
