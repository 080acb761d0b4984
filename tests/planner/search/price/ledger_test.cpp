//===- ledger_test.cpp - A small plan, counted by hand --------------------===//
//
// The plan has two repeats of a product and an activation on a 2 x 2 mesh, and
// three micro-batches. At 1 GB/s, 1 Gflop/s and no latency, a byte of traffic
// and a flop take 1 ns each.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "tests/planner/plain_times.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

constexpr double kNano = 1e-9;

enum Tensors : int { kX, kW, kY, kZ, kLoss, kDw };
enum Factors : int { kB, kI, kO };

Layout layout(std::vector<std::vector<int>> dims,
              std::vector<int> partial = {}) {
  return {std::move(dims), std::move(partial), Reduction::sum};
}

class LedgerTest : public testing::Test {
protected:
  LedgerTest() {
    setting.mesh = meshOf(2, 2);
    setting.microBatches = 3;
    setting.machine = &machine;
    machine.device.reserved = Bytes{1000};

    model.parameters = {{"w", {16, 8}, {Split::row, Split::column}}};
    model.parameters[0].copies = 2;
    SegmentGraph segment;
    segment.name = "h";
    segment.repeat = 2;
    auto add = [&](const char *name, std::vector<std::int64_t> shape,
                   TensorKind kind, Phase phase, int bytes) {
      Tensor tensor;
      tensor.name = name;
      tensor.shape = std::move(shape);
      tensor.kind = kind;
      tensor.phase = phase;
      tensor.elementBytes = bytes;
      segment.tensors.push_back(tensor);
    };
    add("x", {4, 16}, TensorKind::input, Phase::forward, 2);
    add("w", {16, 8}, TensorKind::parameter, Phase::forward, 2);
    add("y", {4, 8}, TensorKind::activation, Phase::forward, 2);
    add("z", {4, 8}, TensorKind::activation, Phase::forward, 2);
    add("loss", {}, TensorKind::activation, Phase::forward, 4);
    add("w.dw", {16, 8}, TensorKind::activation, Phase::backward, 2);
    segment.tensors[kW].parameter = 0;
    auto op = [&](Phase phase, OpClass opClass, std::vector<Use> operands,
                  Use result) {
      Op made;
      made.phase = phase;
      made.opClass = opClass;
      made.factors = {{"b", 4, Split::batch},
                      {"i", 16, Split::row},
                      {"o", 8, Split::column}};
      made.operands = std::move(operands);
      made.results = {std::move(result)};
      if (opClass == OpClass::gemm)
        made.flops = Flops{1024}; // 2 * 4 * 16 * 8
      segment.ops.push_back(made);
      return &segment.ops.back();
    };
    Op *product = op(Phase::forward, OpClass::gemm,
                     {{kX, {kB, kI}}, {kW, {kI, kO}}}, {kY, {kB, kO}});
    product->m = {kB}, product->k = {kI}, product->n = {kO};
    op(Phase::forward, OpClass::memory, {{kY, {kB, kO}}}, {kZ, {kB, kO}});
    op(Phase::forward, OpClass::memory, {{kZ, {kB, kO}}}, {kLoss, {}});
    Op *gradient = op(Phase::backward, OpClass::gemm,
                      {{kX, {kB, kI}}, {kZ, {kB, kO}}}, {kDw, {kI, kO}});
    gradient->m = {kI}, gradient->k = {kB}, gradient->n = {kO};
    segment.accumulations = {{kDw, 0}};
    segment.reported = {kLoss};
    model.segments = {segment};

    // tp splits the rows of w: y is partial and then summed, and w.dw stays
    // split.
    plan.count = 2;
    plan.strategies = {
        {{kB, kI}}, {{kB, kReplicated}}, {{kB, kReplicated}}, {{kB, kI}}};
    plan.made.resize(6);
    plan.saved.resize(6);
    plan.made[kW] = layout({{1}, {}});
    plan.made[kY] = layout({{0}, {}}, {1});
    plan.made[kZ] = plan.saved[kZ] = layout({{0}, {}});
    plan.made[kLoss] = layout({}, {0});
    plan.made[kDw] = layout({{1}, {}}, {0});
    plan.parameters = {ParameterState{layout({{1}, {}}), {}, {}, false}};
    plan.conversions = {
        {kY, Phase::forward, layout({{0}, {}}, {1}), layout({{0}, {}})},
        {kZ, Phase::backward, layout({{0}, {}}), layout({{0}, {1}})}};
  }

  Machine machine = roundMachine();
  Setting setting;
  ModelGraph model;
  SegmentPlan plan;
};

void expectEntry(const LedgerEntry &entry, StepKind kind, int axis,
                 double bytes, LedgerPhase phase, const char *cause,
                 std::int64_t perMicroBatch, std::int64_t perStep,
                 double nanoseconds) {
  SCOPED_TRACE(cause);
  EXPECT_EQ(entry.kind, kind);
  EXPECT_EQ(entry.axis, axis);
  EXPECT_EQ(entry.bytes.value, bytes);
  EXPECT_EQ(entry.phase, phase);
  EXPECT_EQ(entry.cause, cause);
  EXPECT_EQ(entry.segment, "h");
  EXPECT_EQ(entry.perMicroBatch, perMicroBatch);
  EXPECT_EQ(entry.perStep, perStep);
  EXPECT_DOUBLE_EQ(entry.time.value, nanoseconds * kNano);
}

// In each repeat and micro-batch, y has 2 of 4 samples and 8 columns of 2
// bytes: 32 B. Once per repeat and step, the loss, 8 B in double precision, and
// half of the 16 x 8 gradient, 128 B, are reduced. Over two ranks, an
// all-reduce of n bytes sends n bytes. The slice of z is no collective.
TEST_F(LedgerTest, CountsEveryCollective) {
  std::vector<LedgerEntry> ledger = ledgerOf(model, {plan}, setting);
  ASSERT_EQ(ledger.size(), 3U);
  expectEntry(ledger[0], StepKind::allReduce, kTensorAxis, 32,
              LedgerPhase::forward, "y", 2, 6, 32);
  expectEntry(ledger[1], StepKind::allReduce, kDataAxis, 8, LedgerPhase::update,
              "loss", 0, 2, 8);
  expectEntry(ledger[2], StepKind::allReduce, kDataAxis, 128,
              LedgerPhase::update, "w", 0, 2, 128);
}

// Full recomputation repeats the activation, which reads the summed y, so
// backward repeats the all-reduce of y.
TEST_F(LedgerTest, CountsCollectivesOfRecomputation) {
  setting.recompute = Recompute::full;
  std::vector<LedgerEntry> ledger = ledgerOf(model, {plan}, setting);
  ASSERT_EQ(ledger.size(), 4U);
  expectEntry(ledger[0], StepKind::allReduce, kTensorAxis, 32,
              LedgerPhase::forward, "y", 2, 6, 32);
  expectEntry(ledger[1], StepKind::allReduce, kTensorAxis, 32,
              LedgerPhase::backward, "y", 2, 6, 32);
  // The step has 6 more all-reduces than without recomputation.
  EXPECT_DOUBLE_EQ(stepTimeOf(model, {plan}, setting).tensor.value,
                   12 * 32 * kNano);
}

TEST_F(LedgerTest, MergesRunsWithEqualCollectives) {
  SegmentPlan once = plan;
  once.count = 1;
  std::vector<LedgerEntry> ledger = ledgerOf(model, {once, once}, setting);
  ASSERT_EQ(ledger.size(), 3U);
  EXPECT_EQ(ledger[0].perMicroBatch, 2);
  EXPECT_EQ(ledger[0].perStep, 6);
  EXPECT_EQ(ledger[2].perStep, 2);
}

// A gradient that is summed over the tensor axis once per step has 256 B before
// the reduction. A reduce-scatter leaves 128 B, the shard that is stored, and
// an all-reduce sums these over the data axis.
TEST_F(LedgerTest, ReducesOncePerStepIfTheStateSaysSo) {
  plan.parameters[0]->reducedOncePerStep = {kTensorAxis};
  std::vector<LedgerEntry> ledger = ledgerOf(model, {plan}, setting);
  ASSERT_EQ(ledger.size(), 4U);
  expectEntry(ledger[2], StepKind::reduceScatter, kTensorAxis, 256,
              LedgerPhase::update, "w", 0, 2, 128);
  expectEntry(ledger[3], StepKind::allReduce, kDataAxis, 128,
              LedgerPhase::update, "w", 0, 2, 128);
  MemoryUse memory = memoryOf(model, {plan}, setting);
  EXPECT_EQ(memory.gradients.value, 2 * 128 * 2);
  EXPECT_EQ(memory.parameters.value, 2 * 64 * 2);
}

// The activation keeps 3 B for each of the 2 x 8 elements of y on a rank, in
// each of the two repeats. Half of the 16 x 8 weights of each repeat is on a
// rank and has a bucket of 2 B per weight. Without replicas, there are no
// buckets.
TEST_F(LedgerTest, FrameworksKeepMore) {
  const MemoryUse plain = memoryOf(model, {plan}, setting);
  Software software = *setting.software;
  software.passes.activation.kept = 3.0;
  software.memory.buckets = 2.0;
  software.memory.cached = 0.25;
  setting.software = &software;
  model.segments[0].ops[1].pass = PassKind::activation;
  const MemoryUse memory = memoryOf(model, {plan}, setting);
  EXPECT_EQ(memory.activations.value, plain.activations.value + 2 * 16 * 3);
  EXPECT_EQ(memory.gradients.value, plain.gradients.value + 2 * 64 * 2);
  EXPECT_EQ(memory.reserved.value,
            plain.reserved.value + 0.25 * memory.allocated().value);
  EXPECT_EQ(memory.total().value,
            1.25 * memory.allocated().value + machine.device.reserved.value);
  EXPECT_NEAR(roomOf(setting).value * 1.25,
              (machine.device.memory - machine.device.reserved).value, 1.0);
  // The cache of spare bytes counts, too: a plan fits just if the bytes that it
  // may allocate are within roomOf().
  MemoryUse spare = memory;
  spare.reserveWorkspace(memory.workspace + Bytes{400});
  EXPECT_EQ(spare.total().value, memory.total().value + 1.25 * 400);
  setting.recompute = Recompute::full;
  setting.recomputeShare = 1.0;
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 0.0);
}

// z passes through the repeats unchanged. A rank's half of its 4 x 8 elements
// of 2 bytes takes 32 B per virtual stage for any number of repeats. If z is
// saved in another layout than it is carried in, here split by tp too, it takes
// 16 B per repeat.
TEST_F(LedgerTest, RepeatsSaveACarriedValueOnce) {
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 2 * 32);
  model.segments[0].carriedIn = model.segments[0].carriedOut = {kZ};
  plan.carriedIn = plan.carriedOut = {*plan.made[kZ]};
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 32);
  EXPECT_EQ(memoryOf(model, {plan, plan}, setting).activations.value, 32);
  setting.inFlight = 3;
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 3 * 32);
  setting.inFlight = 1;
  setting.parts = 2;
  EXPECT_EQ(memoryOf(model, {plan, plan}, setting).activations.value, 2 * 32);
  plan.count = 1;
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 32);
  plan.count = 2;
  plan.saved[kZ] = layout({{0}, {1}});
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 2 * 16);
  // If z has another position in `carriedIn` than in `carriedOut`, repeats save
  // different values.
  plan.saved[kZ] = plan.made[kZ];
  model.segments[0].carriedIn = {kY, kZ};
  plan.carriedIn = {*plan.made[kY], *plan.made[kZ]};
  EXPECT_EQ(memoryOf(model, {plan}, setting).activations.value, 2 * 32);
}

// The accumulators of two repeats take 2 * 64 * 2 B. With ZeRO 1, an early
// reduce-scatter writes its shard, 8 x 4 elements of 2 B, behind the
// accumulators, once per virtual stage.
TEST_F(LedgerTest, EarlyReduceScattersNeedAShardPerVirtualStage) {
  plan.parameters[0]->optimizer = layout({{1}, {0}});
  EXPECT_EQ(memoryOf(model, {plan}, setting).gradients.value, 256);
  setting.scattersEarly = true;
  EXPECT_EQ(memoryOf(model, {plan}, setting).gradients.value, 256 + 64);
  setting.parts = 2;
  EXPECT_EQ(memoryOf(model, {plan}, setting).gradients.value, 256 + 2 * 64);
  // Two repeats fill at most two chunks.
  setting.parts = 3;
  EXPECT_EQ(memoryOf(model, {plan}, setting).gradients.value, 256 + 2 * 64);
}

// A tied parameter is stored, updated and summed once.
TEST_F(LedgerTest, SharedParametersAreCountedOnce) {
  model.parameters[0].shared = true;
  plan.count = 1;
  std::vector<LedgerEntry> ledger = ledgerOf(model, {plan, plan}, setting);
  ASSERT_EQ(ledger.size(), 3U);
  EXPECT_EQ(ledger[2].cause, "w");
  EXPECT_EQ(ledger[2].perStep, 1);
  EXPECT_DOUBLE_EQ(stepTimeOf(model, {plan, plan}, setting).update.value,
                   64 * (28 + 2) * kNano);
  MemoryUse memory = memoryOf(model, {plan, plan}, setting);
  EXPECT_EQ(memory.parameters.value, 64 * 2);
  EXPECT_EQ(memory.optimizer.value, 64 * 12);
  EXPECT_EQ(memory.gradients.value, 64 * 2);
}

// Two repeats run three micro-batches. Each time, both products compute 256
// flops (their 192 bytes take less time), the activation moves 32 + 32 B and
// the loss 32 + 4 B, the sum of y sends 32 B, and the slice of z moves 16 + 16
// B. Once per repeat and step, 128 + 8 B are sent over the data axis, 64
// weights of 28 B are updated, their gradients of 2 B are read for the norm,
// and the second and third micro-batch read back 128 B of gradient.
TEST_F(LedgerTest, TimeAddsUp) {
  StepTime time = stepTimeOf(model, {plan}, setting);
  EXPECT_DOUBLE_EQ(time.compute.value,
                   (6 * (256 + 64 + 36 + 256) + 2 * 2 * 128) * kNano);
  EXPECT_DOUBLE_EQ(time.tensor.value, 6 * 32 * kNano);
  EXPECT_DOUBLE_EQ(time.local.value, 6 * 32 * kNano);
  EXPECT_DOUBLE_EQ(time.data.value, 2 * (128 + 8) * kNano);
  EXPECT_DOUBLE_EQ(time.update.value, 2 * 64 * 30 * kNano);
  EXPECT_DOUBLE_EQ(time.step.value, (4184 + 192 + 192 + 272 + 3840) * kNano);
}

// Two repeats of 64 weights take 2 + 2 + 12 bytes per weight, and z is saved
// twice, 32 B each. Forward holds y twice (32 B as made, 32 B summed). Backward
// holds more: w.dw (128 B) and the slice of z (16 B). The input x, 32 B, is
// live throughout.
TEST_F(LedgerTest, MemoryByClass) {
  MemoryUse memory = memoryOf(model, {plan}, setting);
  EXPECT_EQ(memory.parameters.value, 256);
  EXPECT_EQ(memory.gradients.value, 256);
  EXPECT_EQ(memory.optimizer.value, 1536);
  EXPECT_EQ(memory.activations.value, 64);
  EXPECT_EQ(memory.workspace.value, 144 + 32);
  EXPECT_EQ(memory.reserved.value, 1000);
  EXPECT_EQ(memory.limit.value, 1e6);
  EXPECT_EQ(memory.total().value, 256 + 256 + 1536 + 64 + 176 + 1000);
  // Memory that is reserved beyond the workspace is reported as `spare`.
  memory.reserveWorkspace(Bytes{200});
  EXPECT_EQ(memory.workspace.value, 176);
  EXPECT_EQ(memory.spare.value, 24);
  EXPECT_EQ(memory.total().value, 256 + 256 + 1536 + 64 + 200 + 1000);
  memory.limit = memory.total() - Bytes{1};
  EXPECT_FALSE(memory.fits());
  memory.reserveWorkspace(Bytes{150});
  EXPECT_EQ(memory.spare.value, 0);
  EXPECT_TRUE(memory.fits());
}

// The operators run in the order loss, activation, product. z is live during
// the first two, and y, once as made and once summed, during the last two. Each
// takes 32 B, which is 96 B at the activation. The input x, 32 B, is live
// throughout. If x is an activation of the segment, it is live only at the
// product, where 96 B are live, too; if x is carried in, it is live from the
// start. If z is sent to the next segment, it is still live at the product.
TEST_F(LedgerTest, BoundaryValuesLiveFromStartToEnd) {
  SegmentGraph &segment = model.segments[0];
  plan.conversions.pop_back();
  plan.saved[kZ].reset();
  segment.ops.pop_back();
  std::swap(segment.ops[0], segment.ops[2]); // loss, activation, product
  std::swap(plan.strategies[0], plan.strategies[2]);
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 128);
  segment.tensors[kX].kind = TensorKind::activation;
  plan.made[kX] = layout({{0}, {1}}); // 2 x 8 of 2 bytes
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 96);
  segment.carriedIn = {kX};
  plan.carriedIn = {*plan.made[kX]};
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 128);
  segment.carriedOut = {kZ};
  plan.carriedOut = {*plan.made[kZ]};
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 128);
  segment.carriedIn = {};
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 128);
}

// Mixed precision has 2 B of weight, 2 B of gradient, 12 B of master copy and
// moments; single precision has 4 + 4 + 8. Both are 16 B, so 1,213,479,936
// weights need 19,415,678,976 B = 18.08 GiB.
TEST(StateBytes, SixteenPerWeight) {
  Machine machine = roundMachine();
  for (Precision precision :
       {Precision::bf16, Precision::fp16, Precision::fp32}) {
    Setting setting;
    setting.mesh = meshOf(1, 1);
    setting.machine = &machine;
    setting.precision = precision;
    ModelGraph model;
    model.parameters = {{"all", {1'213'479'936}, {Split::row}}};
    model.parameters[0].elementBytes = bytesOf(precision);
    model.segments.emplace_back();
    SegmentPlan plan;
    plan.parameters = {ParameterState{layout({{}}), {}, {}, false}};
    Bytes total = memoryOf(model, {plan}, setting).total();
    EXPECT_EQ(total.value, 19'415'678'976.0);
    EXPECT_NEAR(total.value / 1024 / 1024 / 1024, 18.08, 0.005);
    EXPECT_EQ(
        parameterCost(model.parameters[0], *plan.parameters[0], setting).memory,
        total.value);
  }
  EXPECT_EQ(stateBytesOf(Precision::bf16).gradient, 2);
  EXPECT_EQ(stateBytesOf(Precision::bf16).optimizer, 12);
  EXPECT_EQ(stateBytesOf(Precision::fp32).gradient, 4);
  EXPECT_EQ(stateBytesOf(Precision::fp32).optimizer, 8);
}

} // namespace
} // namespace mtplan::planner
