//===- shell_words.h - Words of a shell command line ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H
#define MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H

#include <cstddef>
#include <string>
#include <vector>

namespace mtplan::tools {

struct ShellWord {
  std::string text;
  std::size_t line = 1;
};

/// Splits `text` by the rules of a POSIX shell for quotes, backslashes, line
/// continuations and comments. A newline separates words. Open quotes are
/// errors, and so are variables, substitutions, pipes and redirections, because
/// only a shell can evaluate these.
std::vector<ShellWord> splitShellWords(const std::string &text,
                                       std::vector<std::string> &errors);

/// Quotes `word` if a shell requires it.
std::string shellQuoted(const std::string &word);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H
