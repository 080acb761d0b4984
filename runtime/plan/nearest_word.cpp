//===- nearest_word.cpp - Words that there are ----------------------------===//

#include "runtime/plan/nearest_word.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace mtplan::runtime {

namespace {

// Cost of reading `a` for `b`: 2 for another letter, 1 for another case.
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

} // namespace

// The rule of planner::nearestTo (planner/json_fields.h), which a leaf of its
// own cannot take from here, nor this from there; a test holds them together.
std::string_view nearestTo(std::string_view word,
                           std::span<const std::string_view> candidates) {
  // A word of megabytes is near nothing; its beginning says as much.
  constexpr std::size_t kLongest = 64;
  word = word.substr(0, kLongest);
  // Who typed the beginning of a long name meant that.
  return *std::ranges::min_element(candidates, {}, [&](std::string_view one) {
    return std::pair(!one.starts_with(word), editDistance(word, one));
  });
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

} // namespace mtplan::runtime
