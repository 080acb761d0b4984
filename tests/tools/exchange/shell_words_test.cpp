//===- shell_words_test.cpp - Words of a shell command line ---------------===//

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/shell_words.h"

namespace {

using namespace mtplan::tools;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> errors, words;
  for (const ShellWord &word : splitShellWords(text, errors))
    words.push_back(word.text);
  EXPECT_THAT(errors, IsEmpty()) << text;
  return words;
}

TEST(ExchangeShellWords, SplitsLikeAShell) {
  EXPECT_THAT(wordsOf("a  b\tc\r\nd"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(wordsOf("a#b # c\nd"), ElementsAre("a#b", "d"));
  EXPECT_THAT(wordsOf(R"(x'y z'"u v"w)"), ElementsAre("xy zu vw"));
  EXPECT_THAT(wordsOf(R"('' "")"), ElementsAre("", ""));
  EXPECT_THAT(wordsOf(R"(a\ b '\n' "\n\"\$")"),
              ElementsAre("a b", R"(\n)", R"(\n"$)"));
  EXPECT_THAT(wordsOf("a\\\nb \\\r\n c \"d\\\ne\" 'f\\\ng'"),
              ElementsAre("ab", "c", "de", "f\\\ng"));
}

TEST(ExchangeShellWords, QuotesWhatItCanReadAgain) {
  std::mt19937_64 random(41);
  const std::string letters = "ab'\"\\ $`|#*\n(";
  EXPECT_EQ(shellQuoted("t*2|tL"), "'t*2|tL'");
  EXPECT_EQ(shellQuoted("0.1"), "0.1");
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (std::size_t n = random() % 8; n-- > 0;)
      word += letters[random() % letters.size()];
    EXPECT_THAT(wordsOf("x " + shellQuoted(word)), ElementsAre("x", word));
  }
}

} // namespace
