//===- nearest_word.cpp - Words that there are ----------------------------===//

#include "runtime/plan/nearest_word.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mtplan::runtime {

namespace {

std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1,
                             diagonal + (a[i] == b[j] ? std::size_t{0} : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

} // namespace

std::string_view nearestTo(std::string_view word,
                           std::span<const std::string_view> candidates) {
  // A word of megabytes is near nothing; its beginning says as much.
  constexpr std::size_t kLongest = 64;
  word = word.substr(0, kLongest);
  return *std::ranges::min_element(candidates, {}, [&](std::string_view one) {
    return editDistance(word, one);
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
