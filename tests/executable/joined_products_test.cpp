//===- joined_products_test.cpp - Products that are one -------------------===//
//
// Plans on a backend that takes products together that lie evenly apart, and
// runs them backwards: nothing may depend on their order.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/followed.h"
#include "runtime/plan/joint_products.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/counting_queue.h"
#include "tests/executable/run_plan.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// What was joined, of all ranks; whoever makes a backend shares it.
class Log {
public:
  void add(const std::string &label, std::int64_t runs) {
    std::scoped_lock lock(mutex);
    joined.emplace_back(label, runs);
  }
  std::vector<std::pair<std::string, std::int64_t>> take() {
    std::scoped_lock lock(mutex);
    return std::exchange(joined, {});
  }

private:
  std::mutex mutex;
  std::vector<std::pair<std::string, std::int64_t>> joined;
};

Log &log() {
  static Log all;
  return all;
}

/// Called when joined products run.
std::function<void()> &onRun() {
  static std::function<void()> call;
  return call;
}

/// What is between a product and what follows it stays its own.
class Backwards : public Kernel {
public:
  Backwards(Backend &backend, const KernelSpec &spec, EvenRuns theRuns)
      : runs(std::move(theRuns)), kernel(backend.prepare(spec)) {
    for (std::size_t o = 0; o < spec.outputs.size(); ++o)
      between.emplace_back(
          spec.find(kThen) && o % 2 == 0
              ? static_cast<std::size_t>(spec.outputs[o].elements() *
                                         bytesOf(spec.outputs[o].type))
              : 0);
  }
  void run(const Invocation &call) override {
    if (onRun())
      onRun()();
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

private:
  const EvenRuns runs;
  const std::unique_ptr<Kernel> kernel;
  std::vector<std::vector<std::byte>> between; ///< empty: it is written
};

class JoiningBackend : public Backend {
public:
  Queue &queue() override { return order; }
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    return kernels->prepare(spec);
  }
  std::unique_ptr<Kernel> prepareEven(const KernelSpec &spec,
                                      const EvenRuns &runs) override {
    log().add(spec.label, runs.count);
    return std::make_unique<Backwards>(*kernels, spec, runs);
  }

  Counting order;

private:
  const std::unique_ptr<Backend> kernels = makeCpuBackend(1);
};

std::unique_ptr<Backend> makeJoining() {
  return std::make_unique<JoiningBackend>();
}
std::unique_ptr<Backend> makePlain() { return makeCpuBackend(1); }

constexpr int kSteps = 2;

Plan planOf(const std::string &model, const std::vector<std::string> &flags) {
  TestFolder folder;
  EXPECT_EQ(compileExample(model, folder / "run", flags), "");
  return readPlanFile(folder / "run/plan.json");
}

// Runs both ways, and compares all that comes of it.
void expectSameBits(const Plan &plan) {
  ir::RunOptions options;
  const Gathered expected = runPlan(plan, options, makePlain, 0.0, kSteps);
  log().take();
  const Gathered ran = runPlan(plan, options, makeJoining, 0.0, kSteps);
  std::string worst;
  EXPECT_EQ(worstDifference(ran, expected, worst), 0.0) << worst;
  EXPECT_EQ(ran.gradientNorm, expected.gradientNorm);
}

const std::vector<std::string> kOne{"--gpus", "1"};

TEST(JoinedProducts, AreQueriesKeysAndValues) {
  expectSameBits(planOf("tiny-gpt2", kOne));
  EXPECT_THAT(log().take(), ElementsAre(std::pair("h.*.attn.q", 3),
                                        std::pair("h.*.attn.v.dw", 3)));
}

TEST(JoinedProducts, AddUpInWiderSums) {
  expectSameBits(planOf("tiny-gpt2", {"--gpus", "1", "--precision", "bf16"}));
  EXPECT_THAT(log().take(), SizeIs(2));
}

// Queries and keys are turned, and values kept for backward as they are: those
// lie elsewhere.
TEST(JoinedProducts, AreThoseInOneArena) {
  expectSameBits(planOf("tiny-llama", kOne));
  EXPECT_THAT(log().take(),
              UnorderedElementsAre(std::pair("h.*.attn.q", 2),
                                   std::pair("h.*.mlp.gate", 2),
                                   std::pair("h.*.mlp.up.dw", 2),
                                   std::pair("h.*.attn.v.dw", 3)));
}

// Keys and values are narrower than queries.
TEST(JoinedProducts, AreThoseOfOneShape) {
  expectSameBits(planOf("tiny-mistral", kOne));
  EXPECT_THAT(log().take(),
              UnorderedElementsAre(std::pair("h.*.mlp.gate", 2),
                                   std::pair("h.*.mlp.up.dw", 2),
                                   std::pair("h.*.attn.v.dw", 2)));
}

// The workspace of each stage has room for gradients in the order of their
// products.
TEST(JoinedProducts, AreThoseOfEachStageAndRank) {
  expectSameBits(
      planOf("tiny-gpt2", {"--gpus", "4", "--dp", "2", "--pp", "2"}));
  const std::pair forward("h.*.attn.q", 3), backward("h.*.attn.v.dw", 3);
  EXPECT_THAT(log().take(),
              UnorderedElementsAre(forward, forward, forward, forward, backward,
                                   backward, backward, backward));
}

// Where collectives gather each weight when it is needed.
TEST(JoinedProducts, AreNotThoseWithCollectivesBetween) {
  expectSameBits(planOf("tiny-gpt2", {"--gpus", "2", "--dp", "2", "--zero", "3",
                                      "--hardware", "dgx-h100"}));
  for (const auto &[label, runs] : log().take())
    EXPECT_NE(label, "h.*.attn.q");
}

TEST(JoinedProducts, AreNotThoseOfWhichOneWaits) {
  Plan plan = planOf("tiny-gpt2", kOne);
  Stage &stage = plan.stages.front();
  const auto joints = jointProducts(stage);
  ASSERT_THAT(joints, SizeIs(2));
  // Its operand is made when the first is through, on another stream.
  plan.streams.push_back("beside");
  Program &forward =
      stage.programs[static_cast<std::size_t>(joints[0].program)];
  const std::size_t last = joints[0].instructions.back();
  Instruction scaled = forward.instructions[last];
  scaled.what = KernelCall{"copy", {}};
  scaled.inputs = scaled.outputs = {scaled.inputs[1]};
  scaled.stream = static_cast<int>(plan.streams.size()) - 1;
  for (Instruction &one : forward.instructions)
    for (int &early : one.waits)
      early += early >= static_cast<int>(last) ? 1 : 0;
  forward.instructions[last].waits.push_back(static_cast<int>(last));
  forward.instructions.insert(
      forward.instructions.begin() + static_cast<std::ptrdiff_t>(last), scaled);
  expectSameBits(plan);
  EXPECT_THAT(log().take(), ElementsAre(std::pair("h.*.attn.q", 2),
                                        std::pair("h.*.attn.v.dw", 3)));
}

TEST(JoinedProducts, AreNotThoseThatLieUnevenly) {
  Plan plan = planOf("tiny-gpt2", kOne);
  Stage &stage = plan.stages.front();
  const JointProducts first = jointProducts(stage).front();
  // The values' weight is what the projection's was, and that the values'.
  auto &all =
      stage.programs[static_cast<std::size_t>(first.program)].instructions;
  const auto buffer = [&](const std::string &name) {
    const auto found = std::ranges::find(stage.buffers, name, &Buffer::name);
    EXPECT_NE(found, stage.buffers.end()) << name;
    return found;
  };
  EXPECT_EQ(all[first.instructions[2]].label, "h.*.attn.v");
  std::swap(buffer("h.*.attn.v.weight")->offset,
            buffer("h.*.attn.proj.weight")->offset);
  expectSameBits(plan);
  EXPECT_THAT(log().take(), ElementsAre(std::pair("h.*.attn.q", 2),
                                        std::pair("h.*.attn.v.dw", 3)));
}

// Every run is in the trace; what is joined has its time in the earliest.
TEST(JoinedProducts, RunWithTheEarliest) {
  const Plan plan = planOf("tiny-gpt2", kOne);
  const Stage &stage = plan.stages.front();
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
  std::vector<double> ran; ///< since the first mark
  runOnThreads(1, {}, [&](World &world) {
    alone = step(world, *makePlain());
    runs = std::exchange(trace, {}).size();
    JoiningBackend backend;
    onRun() = [&] { ran.push_back(backend.order.now()); };
    flops = step(world, backend);
  });
  onRun() = nullptr;
  EXPECT_EQ(flops, alone);
  EXPECT_EQ(trace.size(), runs);
  std::vector<double> started;
  for (const InstructionRun &run : trace)
    for (const JointProducts &joint : jointProducts(stage))
      if (run.program == joint.program &&
          run.instruction == static_cast<std::int32_t>(joint.earliest()))
        started.push_back(run.start);
  ASSERT_THAT(started, SizeIs(16)); // of two layers and four micro-batches
  ASSERT_THAT(ran, SizeIs(16));
  for (std::size_t i = 1; i < started.size(); ++i)
    EXPECT_NEAR(started[i] - started[0], ran[i] - ran[0], 1e-6);
}

} // namespace
} // namespace mtplan
