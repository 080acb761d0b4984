//===- pipeline_layout.cpp - "Et*3|(tt|)*29,m|L" --------------------------===//

#include "tools/exchange/pipeline_layout.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include <fmt/format.h>

namespace mtplan::tools {

namespace {

// Limits of letters after expansion, and of nested brackets.
constexpr std::size_t kMostLetters = 100'000;
constexpr std::size_t kMostDepth = 64;

// Expands brackets and repetitions, and drops commas; nothing if the text is
// malformed.
class Expander {
public:
  Expander(const std::string &source, std::vector<std::string> &notes)
      : text(source), errors(notes) {}

  std::string run() {
    for (; position < text.size() && errors.size() == 0; ++position)
      step(text[position]);
    if (errors.empty() && starts.size() > 1)
      fail(fmt::format("the bracket of column {} is not closed",
                       columns.back()));
    return errors.empty() ? letters : std::string();
  }

private:
  void fail(const std::string &what) { errors.push_back(what); }

  void step(char c) {
    if (c == ',' || std::isspace(static_cast<unsigned char>(c)))
      return;
    if (std::string("Etm|L").find(c) != std::string::npos) {
      unit = letters.size();
      letters += c;
    } else if (c == '(') {
      if (starts.size() > kMostDepth)
        return fail(fmt::format("column {}: more than {} brackets within each "
                                "other",
                                position + 1, kMostDepth));
      starts.push_back(letters.size());
      columns.push_back(position + 1);
      unit = std::string::npos;
    } else if (c == ')') {
      if (starts.size() == 1)
        return fail(
            fmt::format("column {}: \")\" closes nothing", position + 1));
      unit = starts.back();
      starts.pop_back();
      columns.pop_back();
    } else if (c == '*') {
      repeat();
    } else {
      fail(fmt::format(
          "column {}: \"{}\" is none of E t m L | ( ) * and digits "
          "after *",
          position + 1, std::isprint(static_cast<unsigned char>(c)) ? c : '?'));
    }
    if (letters.size() > kMostLetters)
      fail(fmt::format("column {}: more than {} letters after repetition",
                       position + 1, kMostLetters));
  }

  void repeat() {
    std::size_t star = position + 1, count = 0, digits = 0;
    while (position + 1 < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[position + 1]))) {
      ++position;
      ++digits;
      count =
          std::min(count * 10 + static_cast<std::size_t>(text[position] - '0'),
                   kMostLetters + 1);
    }
    if (unit == std::string::npos)
      return fail(fmt::format(
          "column {}: \"*\" has nothing before it to repeat", star));
    if (digits == 0 || count == 0)
      return fail(
          fmt::format("column {}: \"*\" needs a number of at least 1", star));
    std::string once = letters.substr(unit);
    if (once.size() * (count - 1) + letters.size() > kMostLetters)
      return fail(
          fmt::format("column {}: more than {} letters after repetition", star,
                      kMostLetters));
    for (std::size_t i = 1; i < count; ++i)
      letters += once;
    unit = std::string::npos;
  }

  const std::string &text;
  std::vector<std::string> &errors;
  std::string letters;
  std::vector<std::size_t> starts = {0}, columns;
  std::size_t position = 0;
  std::size_t unit = std::string::npos; // start of the operand of a star
};

} // namespace

std::vector<PipelinePart>
parsePipelineLayout(const std::string &text, std::vector<std::string> &errors) {
  std::vector<std::string> found;
  std::string letters = Expander(text, found).run();
  errors.insert(errors.end(), found.begin(), found.end());
  std::vector<PipelinePart> parts(1);
  for (char c : letters) {
    PipelinePart &part = parts.back();
    if (c == '|')
      parts.emplace_back();
    else
      ++(c == 't'   ? part.layers
         : c == 'm' ? part.predictors
         : c == 'E' ? part.embeddings
                    : part.losses);
  }
  return parts;
}

std::string writePipelineLayout(const std::vector<int> &layers) {
  std::string text = "E";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0)
      text += '|';
    if (layers[i] > 0)
      text += layers[i] == 1 ? "t" : fmt::format("t*{}", layers[i]);
  }
  return text + 'L';
}

} // namespace mtplan::tools
