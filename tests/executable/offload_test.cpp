//===- offload_test.cpp - Optimizer state in the host's memory ------------===//
//
// On CPU ranks, device and host use the same memory and the same update kernel.
// A run with an offloaded optimizer therefore gives the same bits as a run
// without.
//
//===----------------------------------------------------------------------===//

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "runtime/plan/plan_queries.h"
#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Kept {
  std::string name, model;
  std::vector<std::string> flags;
};

void PrintTo(const Kept &kept, std::ostream *out) { *out << kept.name; }

class Offload : public testing::TestWithParam<Kept> {
protected:
  void SetUp() override {
    for (const std::string what : kBoth) {
      std::vector<std::string> flags = GetParam().flags;
      flags.insert(flags.end(), {"--hardware", "dgx-h100", "--offload", what});
      ASSERT_EQ(compileExample(GetParam().model, folder / what, flags), "");
    }
  }

  // Trains both plans for six steps, with a checkpoint every third step.
  void trainBoth() {
    for (const std::string what : kBoth) {
      const Ran ran = train(what, what);
      ASSERT_EQ(ran.code, 0) << ran.err;
    }
  }

  Ran train(const std::string &plan, const std::string &name,
            const std::vector<std::string> &more = {}) {
    std::vector<std::string> arguments{folder / plan,
                                       "--data",
                                       kText,
                                       "--steps",
                                       "6",
                                       "--every",
                                       "100",
                                       "--metrics",
                                       folder / (name + ".jsonl"),
                                       "--checkpoint",
                                       folder / (name + ".kept"),
                                       "--save-every",
                                       "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return runHere(arguments);
  }

  std::vector<std::string> numbers(const std::string &name) {
    return numbersOf(folder / (name + ".jsonl"));
  }
  // Returns the names of the files that differ between two final checkpoints,
  // except manifests, which name the plan.
  std::vector<std::string> unlike(const std::string &one,
                                  const std::string &other) {
    std::vector<std::string> files =
        differing(folder / (one + ".kept/step-00000006"),
                  folder / (other + ".kept/step-00000006"));
    std::erase(files, "manifest.json");
    return files;
  }

  static constexpr std::array kBoth = {"none", "optimizer"};
  TestFolder folder;
};

TEST_P(Offload, TrainsToTheSameBits) {
  ASSERT_NO_FATAL_FAILURE(trainBoth());
  ASSERT_EQ(numbers("none").size(), 6U);
  EXPECT_EQ(numbers("optimizer"), numbers("none"));
  EXPECT_THAT(unlike("none", "optimizer"), IsEmpty());
}

TEST_P(Offload, ResumesWithAndWithoutOffloadToTheBit) {
  ASSERT_NO_FATAL_FAILURE(trainBoth());
  for (const auto &[from, to] : {std::pair("none", "optimizer"),
                                 {"optimizer", "none"},
                                 {"optimizer", "optimizer"}}) {
    SCOPED_TRACE(std::string(from) + " to " + to);
    const std::string name = std::string(from) + "-" + to;
    const Ran ran =
        train(to, name,
              {"--load", folder / (std::string(from) + ".kept/step-00000003")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("goes on from step 3"));
    EXPECT_THAT(unlike("none", name), IsEmpty());
  }
}

// The device keeps no optimizer state. The host runs the whole update, and all
// gradient transfers are issued before it starts.
TEST_P(Offload, HostRunsTheUpdate) {
  using namespace runtime;
  const Plan plan = readPlanFile(folder / "optimizer/plan.json");
  for (const Stage &stage : plan.stages) {
    for (const Arena &arena : stage.arenas)
      EXPECT_NE(arena.memoryClass, MemoryClass::optimizer);
    std::ptrdiff_t up = 0;
    for (const Program &program : stage.programs) {
      bool updated = false;
      for (const Instruction &one : program.instructions) {
        const auto *call = std::get_if<KernelCall>(&one.what);
        const bool updates = call && call->kernel == "adamw";
        const Side side = sideOf(stage, one);
        EXPECT_EQ(side == Side::host, updates) << one.label;
        EXPECT_FALSE(updated && side == Side::down) << one.label;
        updated = updated || updates;
      }
      up += std::ranges::count_if(program.instructions,
                                  [&](const Instruction &one) {
                                    return sideOf(stage, one) == Side::up;
                                  });
    }
    EXPECT_EQ(up, std::ssize(stage.parameters));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Offload,
    testing::Values(
        Kept{"gpt2", "tiny-gpt2", {"--gpus", "1", "--precision", "fp32"}},
        Kept{
            "gpt2Zero1",
            "tiny-gpt2",
            {"--gpus", "2", "--dp", "2", "--zero", "1", "--precision", "fp32"}},
        Kept{
            "gpt2Fp16Zero3",
            "tiny-gpt2",
            {"--gpus", "2", "--dp", "2", "--zero", "3", "--precision", "fp16"}},
        Kept{"gpt2Pipeline", // both stages hold the tied weight
             "tiny-gpt2",
             {"--gpus", "2", "--pp", "2", "--precision", "fp32"}},
        Kept{"llama",
             "tiny-llama",
             {"--gpus", "2", "--dp", "2", "--precision", "bf16"}},
        Kept{
            "llamaZero1",
            "tiny-llama",
            {"--gpus", "2", "--dp", "2", "--zero", "1", "--precision", "bf16"}},
        Kept{"llamaZero2",
             "tiny-llama",
             // Fixes the same splits for both plans.
             {"--gpus", "4", "--tp", "2", "--dp", "2", "--zero", "2",
              "--precision", "bf16", "--splits", "column,row,head,vocab"}}),
    [](const auto &one) { return one.param.name; });

} // namespace
} // namespace mtplan
