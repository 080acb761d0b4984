//===- nearest_word.cpp - The known word nearest to a typed one -----------===//

#include "base/nearest_word.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace mtplan::base {

namespace {

// Returns the cost of substituting `a` for `b`: 0 if the characters are equal,
// 1 if only their case differs, and 2 otherwise.
std::size_t letterDistance(char a, char b) {
  if (a == b)
    return 0;
  const auto lower = [](char c) {
    return std::tolower(static_cast<unsigned char>(c));
  };
  return lower(a) == lower(b) ? 1 : 2;
}

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = 2 * j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] += 2;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min(
          {above + 2, row[j] + 2, diagonal + letterDistance(a[i], b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

// Returns a function from a candidate to its sort key. Candidates that begin
// with `word` come first, because a person who types the beginning of a long
// name means that name. Within both groups, candidates are sorted by edit
// distance. A very long `word` is truncated, because the cost is quadratic.
auto distanceTo(std::string_view word) {
  constexpr std::size_t kLongest = 64;
  return [word = word.substr(0, kLongest)](std::string_view candidate) {
    return std::pair(!candidate.starts_with(word),
                     editDistance(word, candidate));
  };
}

} // namespace

std::string_view nearestTo(std::string_view word,
                           std::span<const std::string_view> candidates) {
  return *std::ranges::min_element(candidates, {}, distanceTo(word));
}

std::string_view nearestTo(std::string_view word,
                           const std::vector<std::string> &candidates) {
  return *std::ranges::min_element(candidates, {}, distanceTo(word));
}

std::vector<std::string> nearestFirst(std::string_view word,
                                      std::vector<std::string> candidates) {
  std::ranges::stable_sort(candidates, {}, distanceTo(word));
  return candidates;
}

std::string listed(std::span<const std::string_view> words,
                   std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

std::string listed(const std::vector<std::string> &words,
                   std::string_view last) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  return listed(std::span(views), last);
}

} // namespace mtplan::base
