//===- text.h - Lines of a program ------------------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_TEXT_H
#define MTPLAN_CODEGEN_SOURCE_TEXT_H

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::codegen {

struct TextItem {
  enum class Kind { line, comment, call };
  Kind kind = Kind::line;
  std::size_t depth = 0; ///< levels of indentation
  std::string words;     ///< the line, the comment, or the head of a call
  std::vector<std::string> arguments = {};
  std::string end = {};   ///< the lead of a comment, or the tail of a call
  std::string event = {}; ///< the name of the event that a line declares
  /// Summarises the call that a comment describes: "reduce_scatter over dp".
  std::string summary = {};
};

/// Holds the text of a program. Comments and calls are wrapped at 80 columns.
class Text {
public:
  Text() = default;
  explicit Text(std::size_t theDepth) : depth(theDepth) {}

  void line(const std::string &words = "");
  /// Appends `cudaEvent_t name = value;`.
  void event(const std::string &name, const std::string &value);
  /// Returns whether `words`, with indentation, fit into 80 columns.
  bool fits(const std::string &words) const;
  /// Appends a comment, wrapped into lines that begin with "//". The first line
  /// begins with `lead`, and the others are indented by the length of `lead`.
  void comment(const std::string &words, const std::string &lead = "",
               const std::string &summary = "");
  /// Appends a call `head(first, second, ...tail`, wrapped between arguments.
  /// No parenthesis follows a head that ends in a brace.
  void call(const std::string &head, const std::vector<std::string> &arguments,
            const std::string &tail = ");");
  /// Appends a call `head(first, {list}, {list}, last);`. If the call is longer
  /// than a line, each list begins a line.
  void callWithLists(const std::string &head, const std::string &first,
                     const std::vector<std::vector<std::string>> &lists,
                     const std::string &last = "");
  void open(const std::string &words);
  void close(const std::string &words = "}");
  /// Ends the indentation without a closing brace.
  void leave() { --depth; }

  Text nested() const { return Text(depth); }
  /// Appends the items of another text, indented by `levels` more levels.
  void add(const Text &other, std::size_t levels = 0);
  void add(TextItem item) { all.push_back(std::move(item)); }

  const std::vector<TextItem> &items() const { return all; }
  std::string text() const;

private:
  std::vector<TextItem> all;
  std::size_t depth = 0;
};

/// Returns a C++ identifier for a name of the plan: h_ln_1 for "h.*.ln_1". The
/// identifier is not yet in `taken`; the function adds it.
std::string identifierFor(const std::string &name,
                          std::set<std::string> &taken);

bool isWordPart(char c);

/// Holds a text that is split at the names of members of struct `buf`. The
/// names are in order of use.
struct MemberPieces {
  std::vector<std::string> texts, names; ///< `texts` has one more element
};
inline const std::string kMembers = "buf::"; ///< precedes the name of a member
MemberPieces piecesOf(const std::string &text);

std::string quoted(const std::string &text);
/// Returns `value` as a C++ literal of type double (1.0, 0.1, 1e-05), with the
/// fewest digits that determine the value exactly.
std::string numberText(double value);
std::string listText(const std::vector<std::string> &items);
std::string listText(const std::vector<std::int64_t> &items);
std::string listText(const std::vector<int> &items);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TEXT_H
