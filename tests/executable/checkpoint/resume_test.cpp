//===- resume_test.cpp - What may change on resume ------------------------===//
//
// Tests the table of docs/checkpoints.md, row by row.
//
//===----------------------------------------------------------------------===//

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/data/digest.h"
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

  // Compiles the tiny GPT-2 in fp32 on one rank with a global batch of 8,
  // except for the given flags.
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
    ASSERT_EQ(tools::Ran(tools::plain(arguments)).err, "");
  }

  // Resumes a run with the options `more` in addition to or instead of the
  // usual options.
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

  static std::string digestText(const std::string &bytes) {
    return runtime::textOf(runtime::digestOf(bytes));
  }

  /// mtrun at commit 41303f4 wrote this checksum for kText at seed 1234.
  inline static const std::string kOldPrint =
      "6e8b4d55e28c2c67dc1e5419b90690bd";

  static TestFolder *folder;
};
TestFolder *Resume::folder = nullptr;

TEST_F(Resume, SameOptionsResume) {
  const Ran ran = load("plan");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 4"));
  EXPECT_THAT(ran.out, Not(HasSubstr("another plan")));
  EXPECT_EQ(end().samples, 6 * 8);
}

TEST_F(Resume, OtherLayoutIsReported) {
  compile("tp2", {{"--gpus", "2"}, {"--tp", "2"}});
  const Ran ran = load("tp2");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 4, with another plan"));
}

TEST_F(Resume, OtherGlobalBatchResumesAtTheSameSample) {
  compile("batch4", {{"--global-batch", "4"}});
  const Ran ran = load("batch4");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("global batch 4 in place of 8"));
  EXPECT_EQ(end().samples, 4 * 8 + 2 * 4);
}

// A loss depends only on the samples of its step, as there is no learning and
// no dropout. Step 9 with a batch of 4 reads the samples of step 5 after four
// steps with a batch of 8.
TEST_F(Resume, SyntheticDataResumesAtTheSameSample) {
  const auto lossOf = [](const std::string &metrics, int step) {
    std::ifstream log(metrics);
    for (std::string line; std::getline(log, line);)
      if (line.starts_with("{\"step\": " + std::to_string(step) + ","))
        return line.substr(0, line.find(", \"gradient_norm\""))
            .substr(line.find("loss"));
    return "no step " + std::to_string(step);
  };
  const auto run = [&](const std::string &plan, const std::string &steps,
                       const std::string &kept, const std::string &metrics) {
    const Ran ran = runHere({*folder / plan, "--data", "synthetic", "--every",
                             "100", "--lr", "1e-30", "--weight-decay", "0",
                             "--warmup", "1", "--steps", steps, "--checkpoint",
                             *folder / kept, "--metrics", *folder / metrics});
    EXPECT_EQ(ran.code, 0) << ran.err;
  };
  const std::string llama = tools::examplePath("tiny-llama");
  compile("of8", {}, llama);
  compile("of4", {{"--global-batch", "4"}, {"--micro-batch", "1"}}, llama);
  run("of8", "4", "drawn", "first.jsonl");
  run("of4", "5", "drawn", "second.jsonl");
  run("of4", "9", "drawn4", "straight.jsonl");
  EXPECT_EQ(lossOf(*folder / "second.jsonl", 5),
            lossOf(*folder / "straight.jsonl", 9));
  EXPECT_NE(lossOf(*folder / "second.jsonl", 5),
            lossOf(*folder / "straight.jsonl", 5));
}

TEST_F(Resume, ChangedRatesAndLimitsAreReported) {
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

TEST_F(Resume, MovedDataResume) {
  std::filesystem::copy_file(kText, *folder / "moved.txt");
  EXPECT_EQ(load("plan", {"--data", *folder / "moved.txt"}).code, 0);
}

TEST_F(Resume, OtherSeedIsRejected) {
  const Ran ran = load("plan", {"--seed", "5"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("has seed 1234, this one 5: --seed 1234"));
}

TEST_F(Resume, OtherDataAreRejected) {
  std::ofstream(*folder / "other.txt") << std::string(100'000, 'x');
  const Ran ran = load("plan", {"--data", *folder / "other.txt"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("the checkpoint's run has data text, "),
                             HasSubstr("other.txt: text, 100000 bytes")));
}

// The changed file has the same size and begins with the same bytes, so a run
// must read all of it to find the change.
TEST_F(Resume, OneChangedByteOfDataIsRejected) {
  std::string text = contentOf(kText);
  const std::string was = digestText(text);
  text[text.size() / 2] ^= 1;
  std::ofstream(*folder / "changed.txt") << text;
  const Ran ran = load("plan", {"--data", *folder / "changed.txt"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(
      ran.err,
      AllOf(HasSubstr("data text, " + std::to_string(text.size()) +
                      " bytes, xxh128 " + was),
            HasSubstr("changed.txt: text, " + std::to_string(text.size()) +
                      " bytes, xxh128 " + digestText(text)),
            HasSubstr("--weights")));
}

// Older versions of mtrun stored a checksum of the first samples instead of a
// digest of the data.
TEST_F(Resume, OldCheckpointResumesWithANote) {
  const std::string old = *folder / "old";
  std::filesystem::copy(*folder / "before", old,
                        std::filesystem::copy_options::recursive);
  const std::string file = old + "/step-00000004/manifest.json";
  runtime::Manifest manifest = runtime::parseManifest(file, contentOf(file));
  manifest.run.data = kOldPrint;
  std::ofstream(file) << runtime::manifestText(manifest);
  const Ran ran = goOn("plan", {"--load", old});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("has no digest of its data"));
  EXPECT_THAT(end().data, HasSubstr("xxh128 " + digestText(contentOf(kText))));

  std::ofstream(*folder / "late.txt") << contentOf(kText).substr(5000);
  std::filesystem::remove_all(*folder / "kept");
  const Ran other =
      goOn("plan", {"--load", old, "--data", *folder / "late.txt"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("data with checksum " + kOldPrint));
}

TEST_F(Resume, OtherSequenceLengthIsRejected) {
  // A model without learned positions has the same tensors for any length.
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

TEST_F(Resume, OtherModelIsRejectedByItsFirstTensor) {
  compile("other", {}, tools::examplePath("tiny-gptj"));
  const Ran ran = load("other");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("has another model (tiny-gpt2"),
                             HasSubstr("tiny-gptj")));
}

TEST_F(Resume, WeightsAloneStartAtStepOne) {
  const Ran ran = goOn("plan", {"--weights", *folder / "before", "--seed", "5",
                                "--metrics", *folder / "anew.jsonl"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("goes on")));
  EXPECT_THAT(contentOf(*folder / "anew.jsonl"), HasSubstr("{\"step\": 1,"));
  EXPECT_EQ(end().samples, 6 * 8);
}

TEST_F(Resume, FinishedRunTrainsNoStep) {
  const Ran ran = load("plan", {"--steps", "4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("all 4 steps are done"));
  EXPECT_THAT(ran.out, Not(HasSubstr("a step, mean of ")));
}

TEST_F(Resume, OwnCheckpointsTakePrecedence) {
  ASSERT_EQ(load("plan", {"--steps", "5"}).code, 0);
  const Ran ran = load("plan");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("goes on from step 5"));
}

TEST_F(Resume, MissingCheckpointIsReported) {
  const Ran ran = goOn("plan", {"--load", *folder / "plan"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("there is no checkpoint there"));
  const Ran both = goOn("plan", {"--load", "a", "--weights", "b"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("one of the two"));
}

TEST_F(Resume, LinesOfRepeatedStepsAreReplaced) {
  const std::string metrics = *folder / "steps.jsonl";
  ASSERT_EQ(load("plan", {"--metrics", metrics}).code, 0);
  ASSERT_EQ(load("plan", {"--metrics", metrics}).code, 0); // all steps are done
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
