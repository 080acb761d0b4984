//===- nearest_word_test.cpp - One rule for what is nearest ---------------===//
//
// Rooms that may not see each other have it three times.
//
//===----------------------------------------------------------------------===//

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/model/fields.h"
#include "planner/json_fields.h"
#include "runtime/plan/nearest_word.h"

namespace mtplan::tools {
namespace {

std::string nearest(const std::string &word,
                    const std::vector<std::string> &candidates) {
  const std::vector<std::string_view> views(candidates.begin(),
                                            candidates.end());
  std::string found(runtime::nearestTo(word, views));
  EXPECT_EQ(planner::nearestTo(word, candidates), found) << word;
  EXPECT_EQ(ir::nearestFirst(word, candidates).front(), found) << word;
  return found;
}

TEST(NearestWord, BeginsWithWhatWasTyped) {
  EXPECT_EQ(nearest("--micro", {"--dp", "--micro-batch"}), "--micro-batch");
  EXPECT_EQ(nearest("--lr", {"--ln", "--lr-decay", "--lr-floor"}),
            "--lr-decay");
}

TEST(NearestWord, IsTheSameInAnotherCase) {
  EXPECT_EQ(nearest("-O", {"-h", "-o"}), "-o");
  EXPECT_EQ(nearest("GELU", {"relu", "gelu"}), "gelu");
  EXPECT_EQ(nearest("Relu", {"gelu", "RELU"}), "gelu"); // one letter, not three
}

TEST(NearestWord, IsTheFirstOfSeveral) {
  EXPECT_EQ(nearest("xy", {"ab", "cd"}), "ab");
  EXPECT_EQ(nearest("", {"abc", "de", "f"}), "f");
}

TEST(NearestWord, IsOneInEveryRoom) {
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
  nearest(std::string(100, 'a') + "b", {std::string(64, 'a'), "b"});
}

} // namespace
} // namespace mtplan::tools
