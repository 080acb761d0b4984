//===- shell_words.h - A command line as a shell would cut it ---*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H
#define MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H

#include <cstddef>
#include <string>
#include <vector>

namespace mtplan::tools {

struct ShellWord {
  std::string text;
  std::size_t line = 1; ///< where it starts
};

/// The words of `text`: quotes, backslashes, line continuations and comments as
/// in a POSIX shell; a newline separates words. What only a shell could answer
/// (variables, substitutions, pipes, redirections) is an error, as is a quote
/// that is not closed.
std::vector<ShellWord> splitShellWords(const std::string &text,
                                       std::vector<std::string> &errors);

/// `word`, quoted if a shell would not take it as it stands.
std::string shellQuoted(const std::string &word);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SHELL_WORDS_H
