//===- train_test.cpp - Training runs with a falling loss -----------------===//
//
// Runs mtplan -o and mtrun on a text with the CPU kernels in single precision.
// The README states which results are equal to the bit, and which up to
// rounding.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"
#include "tools/run/run_command.h"

namespace mtplan::tools {
namespace {

using testing::HasSubstr;

class Folder {
public:
  Folder() {
    static int count = 0;
    path = std::filesystem::temp_directory_path() /
           ("mtplan-train-" + std::to_string(getpid()) + "-" +
            std::to_string(count++));
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  std::string operator/(const char *name) const {
    return (path / name).string();
  }

private:
  std::filesystem::path path;
};

struct Trained {
  int code = -1;
  std::string out, err;
  std::vector<double> losses, norms; ///< one value per step
};

double numberAfter(const std::string &line, const std::string &key) {
  return std::strtod(line.c_str() + line.find(key) + key.size(), nullptr);
}

Trained train(const std::string &model, std::vector<std::string> flags,
              const std::vector<std::string> &more = {"--data", kText}) {
  Folder folder;
  std::vector<std::string> plan{examplePath(model), "--hardware", "cpu",
                                "--global-batch",   "8",          "-o",
                                folder / "run"};
  plan.insert(plan.end(), flags.begin(), flags.end());
  Ran planned(tools::plain(plan));
  EXPECT_EQ(planned.code, 0) << planned.err;
  std::vector<std::string> run{folder / "run", "--steps",   "6", "--patience",
                               "120",          "--threads", "1", "--metrics",
                               folder / "log"};
  run.insert(run.end(), more.begin(), more.end());
  std::ostringstream out, err;
  Trained trained;
  trained.code = runTraining(run, out, err);
  trained.out = out.str();
  trained.err = err.str();
  std::ifstream log(folder / "log");
  for (std::string line; std::getline(log, line);) {
    trained.losses.push_back(numberAfter(line, "\"loss\": "));
    trained.norms.push_back(numberAfter(line, "\"gradient_norm\": "));
  }
  return trained;
}

void expectClose(const Trained &one, const Trained &other) {
  ASSERT_EQ(one.losses.size(), 6U) << one.err;
  ASSERT_EQ(other.losses.size(), 6U) << other.err;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(one.losses[i], other.losses[i], 1e-5) << "step " << i + 1;
    EXPECT_NEAR(one.norms[i], other.norms[i], 1e-5) << "step " << i + 1;
  }
}

void expectEqual(const Trained &one, const Trained &other) {
  EXPECT_EQ(one.losses.size(), 6U) << one.err;
  EXPECT_EQ(one.losses, other.losses);
  EXPECT_EQ(one.norms, other.norms);
}

const std::vector<std::string> kOneRank{"--gpus", "1", "--micro-batch", "2"};

TEST(Train, TheLossFalls) {
  Trained ran = train("tiny-gpt2", kOneRank);
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(ran.losses.size(), 6U);
  // Initially all 500 tokens are equally likely.
  EXPECT_NEAR(ran.losses[0], std::log(500.0), 0.1);
  EXPECT_LT(ran.losses[5], ran.losses[0] - 0.3);
  EXPECT_THAT(ran.out, HasSubstr("tiny-gpt2 on 1 thread rank: 8 samples"));
  EXPECT_THAT(ran.out, HasSubstr("step 6/6"));
}

TEST(Train, EveryLayoutTrainsTheSame) {
  Trained alone = train("tiny-gpt2", kOneRank);
  for (const std::vector<std::string> &flags :
       std::vector<std::vector<std::string>>{
           {"--gpus", "4", "--dp", "2", "--tp", "2", "--micro-batch", "2"},
           {"--gpus", "4", "--tp-axes", "2,2", "--micro-batch", "2", "--splits",
            "column,row,head,vocab"},
           {"--gpus", "2", "--pp", "2", "--micro-batch", "2"},
           {"--gpus", "2", "--pp", "2", "--schedule", "gpipe", "--micro-batch",
            "2"},
           {"--gpus", "2", "--cp", "2", "--dp", "1", "--tp", "1",
            "--micro-batch", "2"},
           {"--gpus", "4", "--dp", "4", "--zero", "1", "--micro-batch", "1"},
           {"--gpus", "4", "--dp", "4", "--zero", "3", "--recompute", "full",
            "--micro-batch", "2"}}) {
    SCOPED_TRACE(testing::PrintToString(flags));
    expectClose(alone, train("tiny-gpt2", flags));
  }
}

// Gradient reductions give the same sums during the backward pass and after it.
// With all splits, the optimum with overlap may have other strategies, whose
// sums round differently.
TEST(Train, OverlappedReductionsKeepBits) {
  for (std::vector<std::string> flags : std::vector<std::vector<std::string>>{
           {"--gpus", "2", "--dp", "2", "--micro-batch", "1"},
           {"--gpus", "4", "--dp", "2", "--tp", "2", "--micro-batch", "2",
            "--splits", "column,row,head,vocab"},
           {"--gpus", "4", "--dp", "2", "--pp", "2", "--micro-batch", "1"},
           {"--gpus", "4", "--dp", "2", "--cp", "2", "--micro-batch", "2"},
           {"--gpus", "4", "--dp", "4", "--zero", "1", "--micro-batch", "1"},
           {"--gpus", "4", "--dp", "4", "--zero", "1", "--zero-ranks", "2"},
           {"--gpus", "4", "--dp", "2", "--pp", "2", "--zero", "1",
            "--micro-batch", "1"},
           {"--gpus", "4", "--dp", "2", "--cp", "2", "--zero", "1"}}) {
    SCOPED_TRACE(testing::PrintToString(flags));
    const Trained after = train("tiny-gpt2", flags);
    flags.insert(flags.end(), {"--overlap", "on"});
    expectEqual(after, train("tiny-gpt2", flags));
  }
}

TEST(Train, RepetitionAndRecomputationKeepBits) {
  Trained once = train("tiny-gpt2", kOneRank);
  expectEqual(once, train("tiny-gpt2", kOneRank));
  for (const char *what : {"full", "selective"}) {
    std::vector<std::string> flags = kOneRank;
    flags.insert(flags.end(), {"--recompute", what});
    expectEqual(once, train("tiny-gpt2", flags));
  }
}

// No pipeline schedule changes a bit of a step, because losses add up exactly
// and each stage sums its gradients in the same order. Micro-batches of one
// sample and of the whole batch give the same bits as well; micro-batches of
// two and four samples round the sums of gradients differently.
TEST(Train, SchedulesKeepBits) {
  auto ran = [](const std::string &model, const std::string &flags) {
    std::vector<std::string> words{"--layers", "4"};
    std::istringstream text(flags);
    for (std::string word; text >> word;)
      words.push_back(word);
    return train(model, words);
  };
  const std::string staged = "--gpus 2 --pp 2 --micro-batch 1 --schedule ";
  for (const char *model : {"tiny-llama", "tiny-gpt2"}) {
    SCOPED_TRACE(model);
    Trained first = ran(model, "--gpus 1 --micro-batch 8");
    for (const std::string &flags : std::vector<std::string>{
             staged + "gpipe", staged + "1f1b", staged + "zero-bubble",
             staged + "interleaved --vp 2",
             "--gpus 4 --pp 4 --micro-batch 1 --schedule 1f1b",
             "--gpus 2 --pp 2 --micro-batch 8 --schedule 1f1b",
             staged + "1f1b --recompute full"}) {
      SCOPED_TRACE(flags);
      expectEqual(first, ran(model, flags));
    }
  }
  // GPT-2 ties the head to the embedding, and each use has its own gradient
  // sum.
  for (const char *model : {"tiny-llama", "tiny-gpt2", "tiny-bert"}) {
    SCOPED_TRACE(model);
    const Trained whole = ran(model, "--gpus 1 --micro-batch 8");
    expectEqual(whole, ran(model, "--gpus 1 --micro-batch 1"));
    for (const char *size : {"2", "4"})
      expectClose(whole,
                  ran(model, std::string("--gpus 1 --micro-batch ") + size));
  }
}

// Weights and activations have 16 bits; master weights, moments and accumulated
// gradients are in single precision.
TEST(Train, SixteenBitsStayClose) {
  const std::vector<std::string> layout{"--gpus",        "2", "--tp", "2",
                                        "--micro-batch", "2"};
  Trained single = train("tiny-gpt2", layout);
  for (const char *precision : {"bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    std::vector<std::string> flags = layout;
    flags.insert(flags.end(), {"--precision", precision});
    Trained narrow =
        train("tiny-gpt2", flags, {"--data", kText, "--loss-scale", "1024"});
    ASSERT_EQ(narrow.losses.size(), 6U) << narrow.err;
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(narrow.losses[i], single.losses[i], 0.02) << "step " << i + 1;
  }
}

// A scale that is a power of two only changes values that would round to zero.
// A scale that overflows is halved until it fits, and its steps are skipped.
TEST(Train, LossScales) {
  const std::vector<std::string> half{
      "--gpus", "2", "--dp", "2", "--micro-batch", "2", "--precision", "fp16"};
  auto scaled = [&](const char *scale) {
    return train("tiny-gpt2", half, {"--data", kText, "--loss-scale", scale});
  };
  Trained one = scaled("64"), other = scaled("128");
  ASSERT_EQ(one.losses.size(), 6U) << one.err;
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(one.losses[i], other.losses[i], 1e-4);
  Trained high = scaled("megatron"); // starts at 2^32
  ASSERT_EQ(high.losses.size(), 6U) << high.err;
  EXPECT_DOUBLE_EQ(high.losses[0], one.losses[0]);
  EXPECT_THAT(high.out, HasSubstr("scale"));
  Trained wrong = scaled("megaton");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("nearest is megatron"));
  EXPECT_EQ(scaled("-1").code, 2);
}

TEST(Train, EveryFamilyOfTokens) {
  for (const char *model :
       {"tiny-bert", "tiny-llama", "tiny-gptj", "tiny-mixtral", "tiny-t5"}) {
    SCOPED_TRACE(model);
    Trained ran = train(
        model, {"--gpus", "4", "--dp", "2", "--tp", "2", "--micro-batch", "2"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    ASSERT_EQ(ran.losses.size(), 6U);
    EXPECT_LT(ran.losses[5], ran.losses[0]);
  }
}

// A synthetic sample depends only on its number in the run, like a read sample.
TEST(Train, SyntheticSamplesAreTheSameInAnyMicroBatch) {
  for (const char *model : {"tiny-gpt2", "tiny-vit", "tiny-t5"}) {
    SCOPED_TRACE(model);
    const auto ran = [&](const std::vector<std::string> &flags) {
      return train(model, flags, {"--data", "synthetic", "--seed", "31"});
    };
    const Trained whole = ran({"--gpus", "1", "--micro-batch", "8"});
    for (const char *size : {"1", "2", "4"})
      expectClose(whole, ran({"--gpus", "1", "--micro-batch", size}));
    expectClose(whole, ran({"--gpus", "2", "--dp", "2", "--micro-batch", "2"}));
  }
}

TEST(Train, ErrorsAreReported) {
  Trained images = train("tiny-vit", {"--gpus", "1"});
  EXPECT_NE(images.code, 0);
  EXPECT_THAT(images.err, HasSubstr("trained on 'patches'"));
  EXPECT_THAT(images.err, HasSubstr("--data synthetic"));
  EXPECT_EQ(train("tiny-vit", {"--gpus", "1"}, {"--data", "synthetic"}).code,
            0);
  std::ostringstream out, err;
  EXPECT_EQ(runTraining({"/nowhere", "--data", kText}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("/nowhere"));
  Trained decay =
      train("tiny-gpt2", kOneRank, {"--data", kText, "--lr-decay", "sideways"});
  EXPECT_EQ(decay.code, 2);
  EXPECT_THAT(decay.err, HasSubstr("--lr-decay sideways"));
}

} // namespace
} // namespace mtplan::tools
