//===- training_test.cpp - mtrun on emulated GPUs -------------------------===//
//
// Runs the command line of mtrun with --backend cuda over the emulator, and
// compares it with the same run on CPU ranks.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/plan/plan_json.h"
#include "tests/emulator/runs/small_plan.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using emulator::StreamOrder;
using testing::HasSubstr;
using testing::SizeIs;

/// Returns the values of the member `name` in a metrics file, by line. Lines
/// without the member are skipped.
std::vector<double> numbersIn(const std::string &file,
                              const std::string &name) {
  std::vector<double> all;
  std::istringstream lines(contentOf(file));
  const std::string key = "\"" + name + "\": ";
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find(key); at != std::string::npos)
      all.push_back(std::stod(line.substr(at + key.size())));
  return all;
}

struct Way {
  StreamOrder pace;
  bool offloads;
};

void PrintTo(const Way &way, std::ostream *out) {
  *out << "pace " << static_cast<int>(way.pace)
       << (way.offloads ? ", offloaded" : "");
}

class EmulatedTraining : public testing::TestWithParam<Way> {
protected:
  EmulatedTraining() {
    // The model is as small as possible, because each device thread is a fiber.
    const std::string model = folder / "model.json";
    std::ofstream(model) << R"({"model_type": "gpt2", "n_layer": 2,
      "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 256,
      "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.1})";
    std::vector<std::string> flags{"--gpus", "1", "--precision", "fp32"};
    if (GetParam().offloads)
      flags.insert(flags.end(),
                   {"--hardware", "dgx-h100", "--offload", "optimizer"});
    EXPECT_EQ(compileExample(model, plan, flags), "");
    emulator::setStreamOrder(GetParam().pace);
  }
  ~EmulatedTraining() override { emulator::setStreamOrder(StreamOrder::first); }

  Ran train(const std::string &backend, const std::string &metrics,
            const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{plan,
                                       "--data",
                                       kText,
                                       "--backend",
                                       backend,
                                       "--steps",
                                       "6",
                                       "--metrics",
                                       folder / metrics,
                                       "--every",
                                       "1",
                                       "--valid",
                                       kText,
                                       "--eval-every",
                                       "3",
                                       "--eval-steps",
                                       "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return runHere(arguments);
  }

  TestFolder folder;
  const std::string plan = folder / "plan";
};

// Dropout is on. Its masks are drawn on the device from the seed and the step.
TEST_P(EmulatedTraining, HasTheLossesOfTheCpu) {
  unsetenv("CUDA_MODULE_LOADING");
  const Ran cpu = train("cpu", "cpu"), gpu = train("cuda", "gpu");
  ASSERT_EQ(cpu.code, 0) << cpu.err;
  ASSERT_EQ(gpu.code, 0) << gpu.err;
  for (const char *name : {"loss", "gradient_norm", "validation_loss"}) {
    const std::vector<double> expected = numbersIn(folder / "cpu", name),
                              ran = numbersIn(folder / "gpu", name);
    ASSERT_THAT(ran, SizeIs(name[0] == 'v' ? 2 : 6)) << name;
    ASSERT_EQ(ran.size(), expected.size()) << name;
    for (std::size_t i = 0; i < ran.size(); ++i)
      EXPECT_NEAR(ran[i], expected[i], 1e-5 * std::abs(expected[i]))
          << name << " " << i;
  }
  EXPECT_THAT(gpu.out, HasSubstr("attention"));
  // A single rank waits for no other, so modules may be loaded lazily.
  EXPECT_EQ(std::getenv("CUDA_MODULE_LOADING"), nullptr);
}

// A run that resumes from a checkpoint gives the bits of the uninterrupted run.
TEST_P(EmulatedTraining, ResumesToTheBit) {
  ASSERT_EQ(train("cuda", "whole").code, 0);
  const std::vector<std::string> kept{"--checkpoint", folder / "kept",
                                      "--save-every", "2"};
  ASSERT_EQ(train("cuda", "first", kept).code, 0);
  const Ran ran = runHere({"ckpt", "verify", folder / "kept"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  std::vector<std::string> again{"--load", folder / "kept/step-00000004"};
  const Ran rest = train("cuda", "rest", again);
  ASSERT_EQ(rest.code, 0) << rest.err;
  const std::vector<double> whole = numbersIn(folder / "whole", "loss"),
                            last = numbersIn(folder / "rest", "loss");
  ASSERT_THAT(last, SizeIs(2));
  EXPECT_EQ(last[0], whole[4]);
  EXPECT_EQ(last[1], whole[5]);
  EXPECT_EQ(numbersIn(folder / "first", "loss"), whole);
}

INSTANTIATE_TEST_SUITE_P(Paces, EmulatedTraining,
                         testing::Values(Way{StreamOrder::last, false},
                                         Way{StreamOrder::asked, true}));

// Gradients overflow at the initial loss scale. The device skips the updates
// that the host skips, at every ZeRO stage.
class EmulatedScale : public testing::TestWithParam<int> {};

TEST_P(EmulatedScale, SkipsTheStepsOfTheCpu) {
  const TestFolder folder;
  const std::string plan = compileTwoReplicas(
      folder, {"--zero", std::to_string(GetParam()), "--precision", "fp16"});
  const auto train = [&](const std::string &backend) {
    return runHere({plan, "--data", kText, "--backend", backend, "--steps", "8",
                    "--clip", "0.5", "--loss-scale", "nvidia", "--metrics",
                    folder / backend, "--every", "1"});
  };
  const Ran cpu = train("cpu"), gpu = train("cuda");
  ASSERT_EQ(cpu.code, 0) << cpu.err;
  ASSERT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_EQ(numbersIn(folder / "cuda", "loss_scale"),
            numbersIn(folder / "cpu", "loss_scale"));
  const std::vector<double> expected = numbersIn(folder / "cpu", "loss"),
                            ran = numbersIn(folder / "cuda", "loss");
  ASSERT_THAT(ran, SizeIs(8));
  const std::vector<double> scales = numbersIn(folder / "cuda", "loss_scale");
  ASSERT_THAT(scales, SizeIs(8));
  EXPECT_LT(scales[1], scales[0]); // skipped
  EXPECT_EQ(scales[7], scales[6]); // updated
  for (std::size_t i = 0; i < ran.size(); ++i)
    EXPECT_NEAR(ran[i], expected[i], 1e-3 * expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Stages, EmulatedScale, testing::Values(0, 1, 2, 3));

/// Returns start and end of a rank's complete events, in us, in the order of
/// the file.
std::vector<std::pair<double, double>> spansOf(const nlohmann::json &trace,
                                               int rank) {
  std::vector<std::pair<double, double>> spans;
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == rank)
      spans.emplace_back(event["ts"], event["ts"].get<double>() +
                                          event["dur"].get<double>());
  return spans;
}

// While instructions are timed, streams do not run concurrently. In this test,
// every piece of work takes a millisecond.
TEST(EmulatedTimes, AreOfOneInstructionAtATime) {
  const TestFolder folder;
  const std::string plan =
      compileTwoReplicas(folder, {"--zero", "3", "--precision", "bf16"});
  const runtime::Plan read = runtime::readPlanFile(plan + "/plan.json");
  ASSERT_GT(read.streams.size(), 1U);
  const auto train = [&](const std::string &metrics,
                         const std::vector<std::string> &more) {
    std::vector<std::string> arguments{
        plan,      "--data", kText,       "--backend",     "cuda",
        "--steps", "5",      "--metrics", folder / metrics};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return runHere(arguments);
  };
  emulator::setStreamOrder(StreamOrder::last);
  const Ran plain = train("plain", {});
  const Ran ran =
      train("traced", {"--trace", folder / "trace.json", "--trace-step", "4"});
  emulator::setStreamOrder(StreamOrder::first);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(numbersIn(folder / "traced", "loss"),
            numbersIn(folder / "plain", "loss"));
  for (const char *words :
       {" in steps without overlap: kernels ", "a step, mean of 1 and ",
        "\n  gradient norm  ", "\n  products  ", "\n  collectives dp  "})
    EXPECT_THAT(ran.out, HasSubstr(words));
  const auto trace = nlohmann::json::parse(contentOf(folder / "trace.json"));
  for (int rank = 0; rank < 2; ++rank) {
    const auto spans = spansOf(trace, rank);
    ASSERT_GT(spans.size(), 50U);
    double longest = 0.0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      longest = std::max(longest, spans[i].second - spans[i].first);
      const double before = i > 0 ? spans[i - 1].second : 0.0;
      EXPECT_GE(spans[i].first, before - 1.0) << i;
    }
    EXPECT_GT(longest, 900.0);
  }
}

} // namespace
} // namespace mtplan
