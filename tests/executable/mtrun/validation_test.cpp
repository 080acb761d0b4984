//===- validation_test.cpp - The loss on held-out data --------------------===//

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"
#include "tools/run/run_command.h"

namespace mtplan {
namespace {

using testing::HasSubstr;

class Validation : public testing::Test {
protected:
  void SetUp() override {
    // The validation text is another part of the book than the first samples.
    std::ofstream(valid) << contentOf(kText).substr(100000, 20000);
  }

  struct Step {
    std::string training; ///< metrics of training, as text
    double validation = 0.0, perplexity = 0.0;
  };
  std::vector<Step> train(const std::string &plan,
                          const std::vector<std::string> &more) {
    const std::string log = folder / "log";
    std::vector<std::string> arguments{folder / plan, "--data",    kText,
                                       "--steps",     "5",         "--threads",
                                       "1",           "--metrics", log};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out, err;
    EXPECT_EQ(tools::runTraining(arguments, out, err), 0) << err.str();
    shown = out.str();
    std::vector<Step> steps;
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const auto after = [&](const std::string &key) {
        const std::size_t at = line.find(key);
        return at == std::string::npos
                   ? 0.0
                   : std::strtod(line.c_str() + at + key.size(), nullptr);
      };
      steps.push_back({line.substr(0, line.find(", \"skipped\"")),
                       after("\"validation_loss\": "),
                       after("\"perplexity\": ")});
    }
    EXPECT_EQ(steps.size(), 5U);
    steps.resize(5);
    return steps;
  }

  TestFolder folder;
  const std::string valid = folder / "valid.txt";
  const std::vector<std::string> every2{
      "--valid", valid, "--eval-every", "2", "--eval-steps", "5"};
  std::string shown;
};

TEST_F(Validation, TrainingIsTheSameToTheBit) {
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "plan",
                           {"--gpus", "4", "--dp", "2", "--tp", "2"}),
            "");
  const std::vector<Step> without = train("plan", {});
  const std::vector<Step> with = train("plan", every2);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(with[i].training, without[i].training);
    EXPECT_EQ(without[i].validation, 0.0);
    // Validation runs after steps 2 and 4, and after the last.
    EXPECT_EQ(with[i].validation > 0.0, i != 0 && i != 2) << i;
    if (with[i].validation > 0.0) {
      EXPECT_DOUBLE_EQ(with[i].perplexity, std::exp(with[i].validation));
    }
  }
  EXPECT_LT(with[4].validation, with[1].validation);
  EXPECT_THAT(shown, HasSubstr("validation every 2 steps and after the last, "
                               "on 40 samples of "));
}

TEST_F(Validation, IsTheSameInEveryLayout) {
  const auto validationsOf = [&](const std::string &model,
                                 const std::vector<std::string> &flags) {
    EXPECT_EQ(compileExample(model, folder / "plan", flags), "");
    std::vector<double> losses;
    for (const Step &step : train("plan", every2))
      if (step.validation > 0.0)
        losses.push_back(step.validation);
    EXPECT_EQ(losses.size(), 3U);
    return losses;
  };
  for (const char *model : {"tiny-gpt2", "tiny-bert", "tiny-mixtral"}) {
    const std::vector<double> alone = validationsOf(model, {"--gpus", "1"});
    for (const std::vector<std::string> &flags :
         std::vector<std::vector<std::string>>{
             {"--gpus", "4", "--dp", "2", "--tp", "2"},
             {"--gpus", "4", "--dp", "2", "--pp", "2", "--recompute", "full"},
             {"--gpus", "2", "--pp", "2", "--schedule", "zero-bubble"},
             {"--gpus", "2", "--dp", "2", "--zero", "3"}})
      EXPECT_THAT(validationsOf(model, flags),
                  testing::Pointwise(testing::DoubleNear(1e-5), alone))
          << model << testing::PrintToString(flags);
  }
}

TEST_F(Validation, RunsWithoutDropout) {
  // Both runs train the same weights with almost no learning rate, one with
  // dropout and one without. Their validation losses are equal, and their
  // training losses differ.
  std::string model = contentOf(tools::examplePath("tiny-gpt2"));
  for (const char *rate :
       {"\"resid_pdrop\": 0.1", "\"embd_pdrop\": 0.1", "\"attn_pdrop\": 0.1"}) {
    const std::size_t at = model.find(rate);
    ASSERT_NE(at, std::string::npos) << rate;
    model[at + std::string(rate).size() - 1] = '0';
  }
  std::ofstream(folder / "kept.json") << model;
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "dropping", {"--gpus", "1"}),
            "");
  ASSERT_EQ(tools::Ran({folder / "kept.json", "--hardware", "cpu", "--gpus",
                        "1", "--global-batch", "8", "--micro-batch", "2", "-o",
                        folder / "keeping"})
                .err,
            "");
  std::vector<std::string> flags = every2;
  flags.insert(flags.end(), {"--lr", "1e-30"});
  const std::vector<Step> dropping = train("dropping", flags);
  const std::vector<Step> keeping = train("keeping", flags);
  EXPECT_GT(keeping[4].validation, 1.0);
  EXPECT_EQ(dropping[4].validation, keeping[4].validation);
  EXPECT_NE(dropping[4].training, keeping[4].training);
}

TEST_F(Validation, ReadsNoSampleTwice) {
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "plan", {"--gpus", "1"}), "");
  // 639 tokens are 19 samples of 32 tokens, so two global batches of 8 fit.
  const std::string little = folder / "little.txt";
  std::ofstream(little) << contentOf(kText).substr(100000, 639);
  train("plan", {"--valid", little});
  EXPECT_THAT(shown, HasSubstr("on 16 samples of "));
}

} // namespace
} // namespace mtplan
