//===- batched_products_test.cpp - Plans with batches of products ---------===//
//
// Batches are logged by the label of their first product.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/followed.h"
#include "tests/executable/batching_backend.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// Runs the products of a batch in reverse order. A value that only a fused
/// consumer reads is written to a private buffer.
class ReversedProducts : public LoggedBatch {
public:
  ReversedProducts(Backend &backend, const KernelSpec &spec, EvenRuns theRuns)
      : runs(std::move(theRuns)), kernel(backend.prepare(spec)) {
    for (std::size_t o = 0; o < spec.outputs.size(); ++o)
      between.emplace_back(
          spec.find(kThen) && o % 2 == 0
              ? static_cast<std::size_t>(spec.outputs[o].elements() *
                                         bytesOf(spec.outputs[o].type))
              : 0);
  }

private:
  void runBatch(const Invocation &call) override {
    for (std::int64_t r = runs.count; r-- > 0;) {
      std::vector<const void *> inputs;
      std::vector<void *> outputs;
      for (std::size_t i = 0; i < runs.inputs.size(); ++i)
        inputs.push_back(static_cast<const std::byte *>(call.inputs[i]) +
                         r * runs.inputs[i]);
      for (std::size_t o = 0; o < between.size(); ++o)
        outputs.push_back(between[o].empty()
                              ? static_cast<std::byte *>(call.outputs[o]) +
                                    r * runs.outputs[o]
                              : between[o].data());
      kernel->run({inputs.data(), outputs.data(), call.step, call.microBatch,
                   call.copy});
    }
  }

  const EvenRuns runs;
  const std::unique_ptr<Kernel> kernel;
  std::vector<std::vector<std::byte>> between; ///< by output; empty: not fused
};

class ProductBackend : public BatchingBackend {
public:
  std::unique_ptr<Kernel> prepareEven(const KernelSpec &spec,
                                      const EvenRuns &runs) override {
    batchLog().add(spec.label, runs.count);
    return std::make_unique<ReversedProducts>(*kernels, spec, runs);
  }
};

/// Runs the plan without batches of products and with them, and compares all
/// results.
void expectSameBits(const Plan &plan) {
  mtplan::expectSameBits(plan,
                         [] { return std::make_unique<ProductBackend>(); });
}

const std::vector<std::string> kOne{"--gpus", "1"};

/// Holds a batch of products and the number of its program.
struct Found {
  std::size_t program = 0;
  Batch *batch = nullptr;
};

std::vector<Found> batchesOf(Stage &stage) {
  std::vector<Found> found;
  for (std::size_t p = 0; p < stage.programs.size(); ++p)
    for (Batch &batch : stage.programs[p].batches) {
      const auto first = static_cast<std::size_t>(batch.instructions.front());
      const auto *call =
          std::get_if<KernelCall>(&stage.programs[p].instructions[first].what);
      if (call && call->kernel == "einsum")
        found.push_back({p, &batch});
    }
  return found;
}

const std::string &labelOf(const Stage &stage, const Found &found,
                           std::size_t product) {
  const int instruction = found.batch->instructions.at(product);
  return stage.programs[found.program]
      .instructions[static_cast<std::size_t>(instruction)]
      .label;
}

TEST(BatchedProducts, QueriesKeysAndValuesAreBatched) {
  Plan plan = examplePlan("tiny-gpt2", kOne);
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take(), ElementsAre(std::pair("h.*.attn.q", 3),
                                             std::pair("h.*.attn.v.dw", 3)));
  const Stage &stage = plan.stages.front();
  const std::vector<Found> batches = batchesOf(plan.stages.front());
  ASSERT_THAT(batches, SizeIs(2));
  EXPECT_EQ(labelOf(stage, batches[0], 0), "h.*.attn.q");
  EXPECT_EQ(labelOf(stage, batches[0], 1), "h.*.attn.k");
  EXPECT_EQ(labelOf(stage, batches[0], 2), "h.*.attn.v");
  EXPECT_EQ(labelOf(stage, batches[1], 0), "h.*.attn.v.dw");
  EXPECT_EQ(labelOf(stage, batches[1], 1), "h.*.attn.k.dw");
  EXPECT_EQ(labelOf(stage, batches[1], 2), "h.*.attn.q.dw");
}

TEST(BatchedProducts, Bf16BatchesKeepBits) {
  expectSameBits(
      examplePlan("tiny-gpt2", {"--gpus", "1", "--precision", "bf16"}));
  EXPECT_THAT(batchLog().take(), SizeIs(2));
}

// Queries and keys are rotated (RoPE), while values are saved for the backward
// pass in another arena.
TEST(BatchedProducts, OnlyProductsOfOneArenaAreBatched) {
  expectSameBits(examplePlan("tiny-llama", kOne));
  EXPECT_THAT(batchLog().take(),
              UnorderedElementsAre(std::pair("h.*.attn.q", 2),
                                   std::pair("h.*.mlp.gate", 2),
                                   std::pair("h.*.mlp.up.dw", 2),
                                   std::pair("h.*.attn.v.dw", 3)));
}

// Keys and values are narrower than queries (grouped-query attention).
TEST(BatchedProducts, OnlyProductsOfOneShapeAreBatched) {
  expectSameBits(examplePlan("tiny-mistral", kOne));
  EXPECT_THAT(batchLog().take(),
              UnorderedElementsAre(std::pair("h.*.mlp.gate", 2),
                                   std::pair("h.*.mlp.up.dw", 2),
                                   std::pair("h.*.attn.v.dw", 2)));
}

// In the workspace of every stage, the gradients lie in the order of their
// products, as a batch needs.
TEST(BatchedProducts, EveryStageAndRankHasBatches) {
  expectSameBits(
      examplePlan("tiny-gpt2", {"--gpus", "4", "--dp", "2", "--pp", "2"}));
  const std::pair forward("h.*.attn.q", 3), backward("h.*.attn.v.dw", 3);
  EXPECT_THAT(batchLog().take(),
              UnorderedElementsAre(forward, forward, forward, forward, backward,
                                   backward, backward, backward));
}

// ZeRO-3 all-gathers each weight just before its product.
TEST(BatchedProducts, CollectivesBetweenProductsPreventABatch) {
  expectSameBits(examplePlan("tiny-gpt2", {"--gpus", "2", "--dp", "2", "--zero",
                                           "3", "--hardware", "dgx-h100"}));
  for (const auto &[label, runs] : batchLog().take())
    EXPECT_NE(label, "h.*.attn.q");
}

TEST(BatchedProducts, OnlyBatchesOfThePlanRun) {
  Plan plan = examplePlan("tiny-gpt2", kOne);
  const std::vector<Found> batches = batchesOf(plan.stages.front());
  ASSERT_THAT(batches, SizeIs(2));
  std::vector<int> &gradients = batches[1].batch->instructions;
  gradients.erase(gradients.begin());
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take(), ElementsAre(std::pair("h.*.attn.q", 3),
                                             std::pair("h.*.attn.k.dw", 2)));
  plan.stages.front().programs[batches[0].program].batches.clear();
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take(), ElementsAre(std::pair("h.*.attn.k.dw", 2)));
  plan.stages.front().programs[batches[1].program].batches.clear();
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take(), IsEmpty());
}

TEST(BatchedProducts, LateOperandIsRejected) {
  Plan plan = examplePlan("tiny-gpt2", kOne);
  Stage &stage = plan.stages.front();
  const std::vector<Found> batches = batchesOf(stage);
  ASSERT_THAT(batches, SizeIs(2));
  // Another stream writes an operand of the batch's last product after the
  // first product.
  plan.streams.push_back("beside");
  Program &forward = stage.programs[batches[0].program];
  std::vector<int> &products = batches[0].batch->instructions;
  const int last = products.back();
  const auto place = static_cast<std::size_t>(last);
  Instruction scaled = forward.instructions[place];
  scaled.what = KernelCall{"copy", {}};
  scaled.inputs = scaled.outputs = {scaled.inputs[1]};
  scaled.stream = static_cast<int>(plan.streams.size()) - 1;
  for (Instruction &one : forward.instructions)
    for (int &early : one.waits)
      early += early >= last ? 1 : 0;
  for (Batch &batch : forward.batches)
    for (int &one : batch.instructions)
      one += one >= last ? 1 : 0;
  forward.instructions[place].waits.push_back(last);
  forward.instructions.insert(forward.instructions.begin() + last, scaled);
  EXPECT_THAT(batchFaultsOf(plan),
              ElementsAre(HasSubstr("which needs what comes after the first")));
  products.pop_back();
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take(), ElementsAre(std::pair("h.*.attn.q", 2),
                                             std::pair("h.*.attn.v.dw", 3)));
}

TEST(BatchedProducts, UnevenDistancesAreRejected) {
  Plan plan = examplePlan("tiny-gpt2", kOne);
  Stage &stage = plan.stages.front();
  const std::vector<Found> batches = batchesOf(stage);
  ASSERT_THAT(batches, SizeIs(2));
  // The weight of the values and that of the projection swap offsets.
  const auto buffer = [&](const std::string &name) {
    const auto found = std::ranges::find(stage.buffers, name, &Buffer::name);
    EXPECT_NE(found, stage.buffers.end()) << name;
    return found;
  };
  ASSERT_EQ(labelOf(stage, batches[0], 2), "h.*.attn.v");
  std::swap(buffer("h.*.attn.v.weight")->offset,
            buffer("h.*.attn.proj.weight")->offset);
  EXPECT_THAT(
      batchFaultsOf(plan),
      ElementsAre(HasSubstr("has uneven distances before instruction " +
                            std::to_string(batches[0].batch->instructions[2]) +
                            ", in copy 0")));
  batches[0].batch->instructions.pop_back();
  EXPECT_THAT(batchFaultsOf(plan), IsEmpty());
  expectSameBits(plan);
  EXPECT_THAT(batchLog().take(), ElementsAre(std::pair("h.*.attn.q", 2),
                                             std::pair("h.*.attn.v.dw", 3)));
}

// The trace has every product; the first of a batch has the time of the batch.
TEST(BatchedProducts, BatchRunsAtItsFirstProduct) {
  Plan plan = examplePlan("tiny-gpt2", kOne);
  std::vector<InstructionRun> trace;
  const auto step = [&](World &world, Backend &backend) {
    RankExecutor rank(plan, world, backend);
    DrawnData data = drawnDataOf(plan, 1, 1);
    StepInput input;
    input.data = &data;
    input.isTimed = true;
    input.trace = &trace;
    rank.step(input);
    return rank.flops();
  };
  double flops = 0.0, alone = 0.0;
  std::size_t runs = 0;
  std::vector<double> ran; ///< when each batch runs, in clock marks
  runOnThreads(1, {}, [&](World &world) {
    alone = step(world, *makeCpuBackend(1));
    runs = std::exchange(trace, {}).size();
    ProductBackend backend;
    onRun() = [&] { ran.push_back(backend.order.now()); };
    flops = step(world, backend);
  });
  onRun() = nullptr;
  EXPECT_EQ(flops, alone);
  EXPECT_EQ(trace.size(), runs);
  std::vector<double> started;
  const std::vector<Found> batches = batchesOf(plan.stages.front());
  for (const InstructionRun &run : trace)
    for (const Found &found : batches)
      if (run.program == static_cast<std::int32_t>(found.program) &&
          run.instruction == found.batch->instructions.front())
        started.push_back(run.start);
  ASSERT_THAT(started, SizeIs(16)); // 2 batches * 2 layers * 4 micro-batches
  ASSERT_THAT(ran, SizeIs(16));
  for (std::size_t i = 1; i < started.size(); ++i)
    EXPECT_NEAR(started[i] - started[0], ran[i] - ran[0], 1e-6);
}

} // namespace
} // namespace mtplan
