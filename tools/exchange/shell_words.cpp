//===- shell_words.cpp - Words of a shell command line --------------------===//

#include "tools/exchange/shell_words.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace mtplan::tools {

namespace {

// Only the first errors are reported, because later errors often follow from
// earlier errors.
constexpr std::size_t kMostErrors = 20;

class Splitter {
public:
  Splitter(const std::string &source, std::vector<std::string> &notes)
      : text(source), errors(notes) {}

  std::vector<ShellWord> run() {
    while (position < text.size())
      step();
    endWord();
    return std::move(words);
  }

private:
  char peek(std::size_t ahead = 0) const {
    return position + ahead < text.size() ? text[position + ahead] : '\0';
  }
  char take() {
    char c = text[position++];
    if (c == '\n')
      ++line;
    return c;
  }
  void startWord() {
    if (!open)
      words.push_back({{}, line});
    open = true;
  }
  void endWord() { open = false; }
  void append(char c) {
    startWord();
    words.back().text += c;
  }
  void fail(const std::string &what) {
    if (++failures <= kMostErrors)
      errors.push_back(fmt::format("line {}: {}", line, what));
  }

  // Reads a backslash and a line end. If no line end follows the backslash,
  // returns false and reads nothing.
  bool takeContinuation() {
    std::size_t length = peek(1) == '\n'                      ? 2
                         : peek(1) == '\r' && peek(2) == '\n' ? 3
                                                              : 0;
    for (std::size_t i = 0; i < length; ++i)
      take();
    return length > 0;
  }

  void refuseExpansion() {
    std::string name(1, take());
    if (name == "$" && peek() == '{') {
      while (position < text.size() && peek() != '}' && peek() != '\n' &&
             name.size() < 40)
        name += take();
      if (peek() == '}')
        name += take();
    } else {
      while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_')
        if (name.size() < 40)
          name += take();
        else
          take();
    }
    startWord();
    fail(fmt::format("{} is left to a shell, and mtplan runs none; pass the "
                     "command as it is after expansion (\"set -x\" prints it)",
                     name));
  }

  void single() {
    std::size_t opened = line;
    take();
    startWord();
    while (position < text.size() && peek() != '\'')
      append(take());
    close(opened);
  }

  void doubled() {
    std::size_t opened = line;
    take();
    startWord();
    while (position < text.size() && peek() != '"') {
      if (peek() == '$' || peek() == '`') {
        refuseExpansion();
      } else if (peek() == '\\' && takeContinuation()) {
        continue;
      } else {
        if (peek() == '\\' &&
            std::string("\"\\$`").find(peek(1)) != std::string::npos &&
            position + 1 < text.size())
          take();
        append(take());
      }
    }
    close(opened);
  }

  void close(std::size_t opened) {
    if (position < text.size())
      take();
    else
      fail(fmt::format("the quote opened in line {} is not closed", opened));
  }

  void step() {
    char c = peek();
    if (std::isspace(static_cast<unsigned char>(c))) {
      take();
      endWord();
    } else if (c == '#' && !open) {
      while (position < text.size() && peek() != '\n')
        take();
    } else if (c == '\\') {
      if (takeContinuation())
        return;
      take();
      if (position < text.size())
        append(take());
    } else if (c == '\'') {
      single();
    } else if (c == '"') {
      doubled();
    } else if (c == '$' || c == '`') {
      refuseExpansion();
    } else if (std::string("|&;<>()").find(c) != std::string::npos) {
      fail(fmt::format("\"{}\" outside quotes is the shell's; give one command "
                       "alone, and quote it if it belongs to a value",
                       take()));
      endWord();
    } else {
      append(take());
    }
  }

  const std::string &text;
  std::vector<std::string> &errors;
  std::vector<ShellWord> words;
  std::size_t position = 0, line = 1, failures = 0;
  bool open = false;
};

} // namespace

std::vector<ShellWord> splitShellWords(const std::string &text,
                                       std::vector<std::string> &errors) {
  return Splitter(text, errors).run();
}

std::string shellQuoted(const std::string &word) {
  bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string("_-+.,:/=@%").find(c) != std::string::npos;
  });
  if (plain)
    return word;
  std::string quoted = "'";
  for (char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

} // namespace mtplan::tools
