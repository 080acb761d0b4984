//===- fused_kernels_test.cpp - What products do with what they make ------===//
//
// That joined instructions compute what they did apart is what all other runs
// of plans show; and that none overwrites what it reads, the check of plans.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

using runtime::Instruction, runtime::KernelCall;
using testing::AllOf;
using testing::Contains;
using testing::Not;
using testing::StartsWith;

/// "h.*.mlp.fc1 then activation", or, of those that stand alone, "h.*.ln_1".
std::vector<std::string> instructionsOf(const std::string &model,
                                        const std::string &program,
                                        const std::vector<std::string> &flags) {
  TestFolder folder;
  std::vector<std::string> all = {"--hardware", "dgx-h100"};
  all.insert(all.end(), flags.begin(), flags.end());
  EXPECT_EQ(compileExample(model, folder / "run", all), "");
  const auto plan = runtime::readPlanFile(folder / "run/plan.json");
  std::vector<std::string> written;
  for (const runtime::Program &one : plan.stages.front().programs) {
    if (one.name != program)
      continue;
    for (const Instruction &instruction : one.instructions) {
      std::string text = instruction.label;
      const auto *call = std::get_if<KernelCall>(&instruction.what);
      for (const runtime::Setting &setting :
           call ? call->settings : std::vector<runtime::Setting>())
        if (setting.name == "then")
          text += " then " + std::get<std::string>(setting.value);
        else if (setting.name == "bias_gradient")
          text += " with bias";
      written.push_back(text);
    }
  }
  return written;
}

TEST(Followers, AreJoinedWithTheProductThatMakesTheirOperand) {
  const std::vector<std::string> alone = {"--gpus", "1"};
  EXPECT_THAT(instructionsOf("tiny-llama", "h.forward", alone),
              AllOf(Contains("h.*.attn.proj then add"),
                    Contains("h.*.mlp.down then add"),
                    Not(Contains("h.*.attn.add"))));
  EXPECT_THAT(instructionsOf("tiny-llama", "h.backward", alone),
              AllOf(Contains("h.*.attn.q.dx then add"),
                    Contains("h.*.attn.q.dw then accumulate"),
                    Not(Contains("h.*.attn.q.sum")),
                    Not(Contains("h.*.attn.q.weight"))));
  EXPECT_THAT(instructionsOf("tiny-gpt2", "h.forward", alone),
              AllOf(Contains("h.*.mlp.fc1 then activation"),
                    Not(Contains("h.*.mlp.act"))));
  // Where both results have room beside what the einsum reads.
  EXPECT_THAT(instructionsOf("gpt2-124m", "h.backward", alone),
              AllOf(Contains("h.*.mlp.fc2.dx then activation_grad"),
                    Not(Contains("h.*.mlp.act.grad"))));
}

// Beside the product before it, whose bias is its own.
TEST(Followers, OfADropoutAreItsSum) {
  for (const std::string model : {"tiny-gpt2", "gpt2-124m"}) {
    SCOPED_TRACE(model);
    EXPECT_THAT(
        instructionsOf(model, "h.forward", {"--gpus", "1"}),
        AllOf(Contains("h.*.attn.proj"), Contains("h.*.attn.drop then add"),
              Not(Contains("h.*.attn.add")), Contains("h.*.mlp.drop then add"),
              Not(Contains("h.*.mlp.add"))));
  }
}

// What comes past the block is added to what comes through it.
TEST(Followers, OfANormsGradientAreItsSum) {
  for (const std::string model : {"tiny-llama", "gpt2-124m"}) {
    SCOPED_TRACE(model);
    EXPECT_THAT(instructionsOf(model, "h.backward", {"--gpus", "1"}),
                AllOf(Contains("h.*.ln_1.grad then add"),
                      Contains("h.*.ln_2.grad then add"),
                      Not(Contains("h.*.ln_1.sum")),
                      Not(Contains("h.*.ln_2.sum"))));
  }
}

// Whether gradients are added up, or sent as they are made.
TEST(Followers, OfAWeightsGradientAreItsBiases) {
  for (const std::string zero : {"0", "1", "3"}) {
    SCOPED_TRACE(zero);
    const std::string then = zero == "3" ? "" : " then accumulate";
    EXPECT_THAT(instructionsOf("gpt2-124m", "h.backward",
                               {"--gpus", "4", "--dp", "4", "--zero", zero}),
                AllOf(Contains("h.*.attn.q.dw" + then + " with bias"),
                      Contains("h.*.mlp.fc2.dw" + then + " with bias"),
                      Not(Contains("h.*.attn.q.db then accumulate")),
                      Not(Contains("h.*.mlp.fc2.bias then accumulate"))));
  }
}

} // namespace
} // namespace mtplan
