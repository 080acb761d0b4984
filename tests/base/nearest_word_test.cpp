//===- nearest_word_test.cpp - The known word nearest to a typed one ------===//

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/nearest_word.h"

namespace mtplan::base {
namespace {

// Returns the nearest candidate and expects all three functions to agree.
std::string nearest(const std::string &word,
                    const std::vector<std::string> &candidates) {
  const std::vector<std::string_view> views(candidates.begin(),
                                            candidates.end());
  std::string found(nearestTo(word, views));
  EXPECT_EQ(nearestTo(word, candidates), found) << word;
  EXPECT_EQ(nearestFirst(word, candidates).front(), found) << word;
  return found;
}

TEST(NearestWord, PrefersAWordWithTheTypedPrefix) {
  EXPECT_EQ(nearest("--micro", {"--dp", "--micro-batch"}), "--micro-batch");
  EXPECT_EQ(nearest("--lr", {"--ln", "--lr-decay", "--lr-floor"}),
            "--lr-decay");
}

TEST(NearestWord, PrefersTheSameWordInAnotherCase) {
  EXPECT_EQ(nearest("-O", {"-h", "-o"}), "-o");
  EXPECT_EQ(nearest("GELU", {"relu", "gelu"}), "gelu");
  EXPECT_EQ(nearest("Relu", {"gelu", "RELU"}), "gelu"); // 1 edit; RELU: 3
}

TEST(NearestWord, IsTheFirstOfEquallyNearOnes) {
  EXPECT_EQ(nearest("xy", {"ab", "cd"}), "ab");
  EXPECT_EQ(nearest("", {"abc", "de", "f"}), "f");
}

TEST(NearestWord, IsTheSameInAllFunctions) {
  std::mt19937_64 random(5);
  const std::string letters = "abAB-";
  const auto draw = [&](std::size_t most) {
    std::string word(random() % (most + 1), 'a');
    for (char &letter : word)
      letter = letters[random() % letters.size()];
    return word;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> candidates;
    for (std::size_t i = random() % 6 + 1; i > 0; --i)
      candidates.push_back(draw(8));
    nearest(draw(6), candidates);
  }
  std::string word(100, 'a');
  word += 'b';
  EXPECT_EQ(nearest(word, {std::string(64, 'a'), "b"}), std::string(64, 'a'));
}

TEST(NearestFirst, SortsByDistanceAndKeepsTheOrderOfEqualOnes) {
  EXPECT_EQ(
      nearestFirst("gelu", {"softmax", "relu", "gelu_tanh", "selu", "gelu"}),
      (std::vector<std::string>{"gelu", "gelu_tanh", "relu", "selu",
                                "softmax"}));
}

TEST(Listed, JoinsWithCommasAndALastWord) {
  const std::vector<std::string> words = {"a", "b", "c"};
  EXPECT_EQ(listed(words), "a, b or c");
  EXPECT_EQ(listed(words, " and "), "a, b and c");
  EXPECT_EQ(listed(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(listed(std::vector<std::string>{}), "");
}

} // namespace
} // namespace mtplan::base
