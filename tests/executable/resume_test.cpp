//===- resume_test.cpp - What may change when a run goes on ---------------===//
//
// The table of docs/checkpoints.md, row by row.
//
//===----------------------------------------------------------------------===//

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Resume : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder = new TestFolder;
    compile("plan", {});
    const Ran ran = goOn("plan", {"--steps", "4", "--save-every", "2"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::filesystem::rename(*folder / "kept", *folder / "before");
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }
  void TearDown() override { std::filesystem::remove_all(*folder / "kept"); }

  // The tiny GPT-2 in fp32 on one rank with a global batch of 8, but for what
  // is given.
  static void
  compile(const std::string &name, std::map<std::string, std::string> flags,
          const std::string &model = tools::examplePath("tiny-gpt2")) {
    flags.insert({{"--gpus", "1"},
                  {"--precision", "fp32"},
                  {"--hardware", "cpu"},
                  {"--global-batch", "8"},
                  {"--micro-batch", "2"},
                  {"-o", *folder / name}});
    std::vector<std::string> arguments{model};
    for (const auto &[flag, value] : flags)
      arguments.insert(arguments.end(), {flag, value});
    ASSERT_EQ(tools::Ran(arguments).err, "");
  }

  // With options that come last, and so count, after the usual ones.
  static Ran goOn(const std::string &plan, std::vector<std::string> more) {
    const auto given = [&](const char *option) {
      return std::ranges::find(more, option) != more.end();
    };
    std::vector<std::string> all{*folder / plan, "--every", "100",
                                 "--checkpoint", *folder / "kept"};
    if (!given("--data"))
      all.insert(all.end(), {"--data", kText});
    if (!given("--steps"))
      all.insert(all.end(), {"--steps", "6"});
    if (!given("--warmup"))
      all.insert(all.end(), {"--warmup", "1"});
    all.insert(all.end(), more.begin(), more.end());
    return runHere(all);
  }
  static Ran load(const std::string &plan, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--load", *folder / "before"});
    return goOn(plan, more);
  }
  static runtime::RunState end() {
    return runtime::readManifest(*folder / "kept/step-00000006").run;
  }

  static TestFolder *folder;
};
TestFolder *Resume::folder = nullptr;

TEST_F(Resume, TheSameGoesOn) {
  const Ran ran = load("plan");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 4"));
  EXPECT_THAT(ran.out, Not(HasSubstr("another plan")));
  EXPECT_EQ(end().samples, 6 * 8);
}

TEST_F(Resume, AnotherLayoutIsTold) {
  compile("tp2", {{"--gpus", "2"}, {"--tp", "2"}});
  const Ran ran = load("tp2");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 4, with another plan"));
}

TEST_F(Resume, AnotherGlobalBatchGoesOnAtTheSameSample) {
  compile("batch4", {{"--global-batch", "4"}});
  const Ran ran = load("batch4");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("global batch 4 in place of 8"));
  EXPECT_EQ(end().samples, 4 * 8 + 2 * 4);
}

TEST_F(Resume, RatesAndLimitsMayChangeAndAreTold) {
  const Ran ran =
      load("plan", {"--lr", "0.0005", "--clip", "0.5", "--weight-decay", "0"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("--lr 0.0005 in place of 0.001"),
                             HasSubstr("--clip 0.5 in place of 1"),
                             HasSubstr("--weight-decay 0 in place of 0.1")));
}

TEST_F(Resume, AnotherPrecisionRounds) {
  for (const std::string precision : {"bf16", "fp16"}) {
    compile(precision, {{"--precision", precision}});
    const Ran ran = load(precision);
    ASSERT_EQ(ran.code, 0) << precision << ": " << ran.err;
    EXPECT_EQ(end().step, 6);
    std::filesystem::remove_all(*folder / "kept");
  }
}

TEST_F(Resume, TheSameDataElsewhereGoesOn) {
  std::filesystem::copy_file(kText, *folder / "moved.txt");
  EXPECT_EQ(load("plan", {"--data", *folder / "moved.txt"}).code, 0);
}

TEST_F(Resume, AnotherSeedIsRefused) {
  const Ran ran = load("plan", {"--seed", "5"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("has seed 1234, this one 5: --seed 1234"));
}

TEST_F(Resume, OtherDataAreRefused) {
  std::ofstream(*folder / "other.txt") << std::string(100'000, 'x');
  const Ran ran = load("plan", {"--data", *folder / "other.txt"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("data with checksum"));
}

TEST_F(Resume, AnotherSequenceIsRefused) {
  // Without learned positions all tensors are the same.
  std::string model = contentOf(tools::examplePath("tiny-llama"));
  compile("llama", {}, tools::examplePath("tiny-llama"));
  ASSERT_EQ(goOn("llama", {"--steps", "4"}).code, 0);
  const std::regex positions("(\"max_position_embeddings\": *)32");
  ASSERT_TRUE(std::regex_search(model, positions));
  std::ofstream(*folder / "tiny-llama.json")
      << std::regex_replace(model, positions,
                            "$01"
                            "16");
  compile("short", {}, *folder / "tiny-llama.json");
  const Ran ran = goOn("short", {});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("sequences of 32, this one 16"));
}

TEST_F(Resume, AnotherModelIsRefusedByItsFirstTensor) {
  compile("other", {}, tools::examplePath("tiny-gptj"));
  const Ran ran = load("other");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("is of another model (tiny-gpt2"),
                             HasSubstr("tiny-gptj")));
}

TEST_F(Resume, WeightsAloneBeginAnew) {
  const Ran ran = goOn("plan", {"--weights", *folder / "before", "--seed", "5",
                                "--metrics", *folder / "anew.jsonl"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("goes on")));
  EXPECT_THAT(contentOf(*folder / "anew.jsonl"), HasSubstr("{\"step\": 1,"));
  EXPECT_EQ(end().samples, 6 * 8);
}

TEST_F(Resume, WhatIsDoneIsNotDoneAgain) {
  const Ran ran = load("plan", {"--steps", "4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("all 4 steps are done"));
  EXPECT_THAT(ran.out, Not(HasSubstr("a step, mean of ")));
}

TEST_F(Resume, ItsOwnCheckpointsComeBeforeOthers) {
  ASSERT_EQ(load("plan", {"--steps", "5"}).code, 0);
  const Ran ran = load("plan");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 5"));
}

TEST_F(Resume, WhatIsNotThereIsSaid) {
  const Ran ran = goOn("plan", {"--load", *folder / "plan"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("there is no checkpoint there"));
  const Ran both = goOn("plan", {"--load", "a", "--weights", "b"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("one of the two"));
}

TEST_F(Resume, LinesOfStepsThatAreDoneAgainAreReplaced) {
  const std::string metrics = *folder / "steps.jsonl";
  ASSERT_EQ(load("plan", {"--metrics", metrics}).code, 0);
  ASSERT_EQ(load("plan", {"--metrics", metrics}).code, 0); // all are done
  std::filesystem::remove_all(*folder / "kept");
  ASSERT_EQ(load("plan", {"--metrics", metrics}).code, 0);
  std::ifstream stream(metrics);
  std::vector<std::string> starts;
  for (std::string line; std::getline(stream, line);)
    starts.push_back(line.substr(0, line.find(',')));
  EXPECT_THAT(starts, testing::ElementsAre("{\"step\": 5", "{\"step\": 6"));
}

} // namespace
} // namespace mtplan
