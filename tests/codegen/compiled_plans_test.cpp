//===- compiled_plans_test.cpp - Instructions of compiled plans -----------===//
//
// Tests which instructions of compiled plans are fused, and properties of their
// programs. Other tests run compiled plans and check the results. Every
// compilation runs the plan check, which verifies that no fused instruction
// overwrites its operands, that the first micro-batch stores a gradient sum,
// and that later micro-batches add to the sum.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/source/cuda_source.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

using runtime::Instruction, runtime::KernelCall;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Returns the instructions of a program of the compiled plan: "h.*.ln_1", or,
/// with a fused consumer, "h.*.mlp.fc1 then activation".
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

TEST(FusedConsumers, AreFusedIntoTheProductOfTheirOperand) {
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
  // The fused kernel needs memory for its two results in addition to the
  // product's inputs.
  EXPECT_THAT(instructionsOf("gpt2-124m", "h.backward", alone),
              AllOf(Contains("h.*.mlp.fc2.dx then activation_grad"),
                    Not(Contains("h.*.mlp.act.grad"))));
}

// The projection before the dropout is not fused with the dropout; the epilogue
// of the projection adds the bias.
TEST(FusedConsumers, ResidualAddIsFusedIntoTheDropout) {
  for (const std::string model : {"tiny-gpt2", "gpt2-124m"}) {
    SCOPED_TRACE(model);
    EXPECT_THAT(
        instructionsOf(model, "h.forward", {"--gpus", "1"}),
        AllOf(Contains("h.*.attn.proj"), Contains("h.*.attn.drop then add"),
              Not(Contains("h.*.attn.add")), Contains("h.*.mlp.drop then add"),
              Not(Contains("h.*.mlp.add"))));
  }
}

// The add sums the gradient of the residual connection and that of the block.
TEST(FusedConsumers, ResidualGradientAddIsFusedIntoTheNormGradient) {
  for (const std::string model : {"tiny-llama", "gpt2-124m"}) {
    SCOPED_TRACE(model);
    EXPECT_THAT(instructionsOf(model, "h.backward", {"--gpus", "1"}),
                AllOf(Contains("h.*.ln_1.grad then add"),
                      Contains("h.*.ln_2.grad then add"),
                      Not(Contains("h.*.ln_1.sum")),
                      Not(Contains("h.*.ln_2.sum"))));
  }
}

// ZeRO 0 and 1 accumulate gradients over micro-batches; ZeRO 3 reduces the
// gradients of every micro-batch.
TEST(FusedConsumers, BiasGradientIsFusedIntoTheWeightGradient) {
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

// The plans have pipeline stages, sharded gradients, an offloaded optimizer,
// experts or tied weights, and all have several micro-batches.
TEST(FirstTerms, AreStoredInEveryCompiledPlan) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> compiled{
      {"tiny-gpt2", {"--gpus", "2", "--pp", "2"}},
      {"tiny-gpt2",
       {"--gpus", "2", "--zero", "1", "--offload", "optimizer", "--hardware",
        "dgx-1"}},
      {"tiny-llama", {"--gpus", "2", "--zero", "2", "--overlap", "on"}},
      {"tiny-llama", {"--gpus", "2", "--zero", "3"}},
      {"tiny-mixtral", {"--gpus", "2", "--ep", "2"}},
      {"tiny-t5", {"--gpus", "1"}}};
  for (const auto &[model, how] : compiled) {
    SCOPED_TRACE(model + ' ' + testing::PrintToString(how));
    const TestFolder folder;
    EXPECT_EQ(compileExample(model, folder / "run", how), "");
    const runtime::Plan plan = runtime::readPlanFile(folder / "run/plan.json");
    EXPECT_GT(plan.microBatches, 1);
  }
}

// The test moves the update's kernels from stream 0 to stream 1.
TEST(Source, RejectsKernelsOffTheFirstStream) {
  const TestFolder folder;
  ASSERT_EQ(
      compileExample("tiny-gpt2", folder / "run", {"--gpus", "2", "--dp", "2"}),
      "");
  runtime::Plan plan = runtime::readPlanFile(folder / "run/plan.json");
  EXPECT_NO_THROW(codegen::cudaProgram(plan));
  ASSERT_GE(plan.streams.size(), 2);
  runtime::Stage &stage = plan.stages.front();
  const int updates = stage.apply[1].program;
  for (Instruction &one :
       stage.programs[static_cast<std::size_t>(updates)].instructions)
    one.stream = 1;
  try {
    codegen::cudaProgram(plan);
    FAIL() << "was written";
  } catch (const codegen::SourceError &error) {
    EXPECT_THAT(error.what(), HasSubstr("is a kernel on stream data"));
  }
}

} // namespace
} // namespace mtplan
