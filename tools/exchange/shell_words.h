//===- shell_words.h - Words of a shell command line ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H
#define MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H

#include <cstddef>
#include <string>
#include <vector>

namespace mtplan::tools {

struct ShellWord {
  std::string text;
  std::size_t line = 1; ///< line of its first character
};

/// Splits `text` like a POSIX shell, by quotes, backslashes, line continuations
/// and comments; a newline separates words. Variables, substitutions, pipes and
/// redirections are errors, because only a shell can evaluate them, and so is
/// an open quote.
std::vector<ShellWord> splitShellWords(const std::string &text,
                                       std::vector<std::string> &errors);

/// Quotes `word` if a shell requires it.
std::string shellQuoted(const std::string &word);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H
