//===- repeated_work_test.cpp - Work that tensor ranks repeat -------------===//

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/integers.h"
#include "tests/tools/command_testing.h"

namespace mtplan::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> notesOf(const std::string &model,
                                 std::vector<std::string> arguments) {
  const std::string text = runExample(model, std::move(arguments)).out;
  std::vector<std::string> notes;
  for (std::size_t at = text.find("\nnote: "); at != std::string::npos;
       at = text.find("\nnote: ", at + 1))
    notes.push_back(text.substr(at + 7, text.find('\n', at + 1) - at - 7));
  return notes;
}

TEST(RepeatedWork, IsNotedWithRemedies) {
  const std::string seven =
      "all 7 GPUs do the same work: tp 7 divides none of global batch 512, "
      "features 768 and 3072, heads 12, sequence 1024, vocabulary 50304; "
      "nearest numbers of GPUs that could share it: 6 and 8, or 7 with --pp "
      "any";
  EXPECT_THAT(notesOf("gpt2-124m", {"--gpus", "7"}), ElementsAre(seven));
  EXPECT_THAT(runExample("gpt2-124m", {"--gpus", "7", "--json"}).out,
              HasSubstr("\"notes\": [\n    \"" + seven + '"'));
  EXPECT_THAT(notesOf("gpt2-124m", {"--gpus", "7", "--pp", "any"}), IsEmpty());
  EXPECT_THAT(notesOf("gpt2-124m", {"--gpus", "14"}),
              ElementsAre(HasSubstr("every 7 GPUs (tp) do the same work: tp 7 "
                                    "divides none of 256 samples of a "
                                    "replica, ")));
  // There are more GPUs than layers.
  EXPECT_THAT(notesOf("gpt2-124m", {"--gpus", "13"}),
              ElementsAre(testing::EndsWith("share it: 12 and 16")));
}

// All work except the logits is repeated.
TEST(RepeatedWork, MayBeMostOfTheWork) {
  EXPECT_THAT(
      notesOf("gpt2-8.3b", {"--gpus", "5", "--memory-gib", "999"}),
      ElementsAre(HasSubstr("all 5 GPUs repeat 98 % of the work: tp 5 divides "
                            "none of global batch 512, features 3072 and "
                            "12288, heads 32, sequence 1024;")));
}

TEST(RepeatedWork, MayBeAskedFor) {
  EXPECT_THAT(notesOf("tiny-gpt2",
                      {"--gpus", "2", "--tp", "2", "--pin", "*=replicated"}),
              ElementsAre("both GPUs do the same work: by --pin, or because "
                          "nothing there divides"));
  EXPECT_THAT(notesOf("tiny-gpt2", {"--gpus", "2", "--dp", "1", "--splits",
                                    "batch", "--micro-batch", "1"}),
              ElementsAre("both GPUs do the same work: tp 2 divides none of "
                          "micro-batch 1; with --pp any they could share it"));
}

// Repeating so little work is faster than communication.
TEST(RepeatedWork, MayBeFasterThanCommunication) {
  EXPECT_THAT(notesOf("tiny-gpt2", {"--gpus", "12", "--global-batch", "12"}),
              ElementsAre("all 12 GPUs do the same work: sharing it would take "
                          "longer, or more memory than there is; 1 of them "
                          "may do as well"));
}

// Each suggested number splits the work, and no nearer number does.
TEST(RepeatedWork, NamesTheNearest) {
  const std::string named = "that could share it: ";
  for (const std::vector<std::string> &with : {std::vector<std::string>{},
                                               {"--splits", "column,row"},
                                               {"--pp", "1,2"}}) {
    std::map<int, std::string> said; // notes by number of GPUs
    for (int gpus = 2; gpus <= 40; ++gpus) {
      std::vector<std::string> flags{"--gpus",         std::to_string(gpus),
                                     "--global-batch", "12",
                                     "--layers",       "2",
                                     "--top",          "1"};
      flags.insert(flags.end(), with.begin(), with.end());
      const std::vector<std::string> notes = notesOf("gpt2-124m", flags);
      ASSERT_LE(notes.size(), 1U);
      // A number that could split the work, but more slowly, still counts as a
      // neighbour.
      said[gpus] = notes.empty() || notes.front().find("take longer") !=
                                        std::string::npos
                       ? ""
                       : notes.front();
    }
    int checked = 0;
    for (int gpus = 2; gpus <= 20; ++gpus) {
      if (said[gpus].empty())
        continue;
      std::vector<int> near;
      for (int below = gpus - 1; below > 1 && near.empty(); --below)
        if (said[below].empty())
          near.push_back(below);
      for (int above = gpus + 1; above <= 2 * gpus; ++above)
        if (said[above].empty()) {
          near.push_back(above);
          break;
        }
      const std::size_t at = said[gpus].find(named);
      ASSERT_NE(at, std::string::npos) << said[gpus];
      const std::string rest = said[gpus].substr(at + named.size());
      EXPECT_EQ(rest.substr(0, rest.find(',')), planner::listText(near, "and"))
          << said[gpus];
      ++checked;
    }
    EXPECT_GT(checked, 3);
  }
}

} // namespace
} // namespace mtplan::tools
