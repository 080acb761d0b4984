//===- compute_cost_test.cpp - Operator times worked by hand --------------===//

#include <random>

#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/machine/software_json.h"
#include "tests/planner/cost/op_case.h"
#include "tests/planner/plain_times.h"

using namespace mtplan::planner;

namespace {

// Returns a device of 100 units with tiles of 10 x 10, 1 Tflop/s in fp16, a
// tenth of it in fp32, and 1 GB/s. Kernels reach half of these rates, so that
// expectations are worked by hand.
Machine roundMachine() {
  Machine machine;
  Device &device = machine.device;
  device.bandwidth = BytesPerSec{1e9};
  device.bandwidthEfficiency = 0.5;
  device.units = 100;
  device.tiles = {{10, 10, 1.0}};
  device.gemmEfficiency = 0.5;
  device.attentionEfficiency = 0.25;
  device.fp16 = FlopsPerSec{1e12};
  device.fp32 = FlopsPerSec{1e11};
  return machine;
}

Tensor tensor(std::vector<std::int64_t> shape, int elementBytes = 2) {
  Tensor result;
  result.shape = std::move(shape);
  result.elementBytes = elementBytes;
  return result;
}

const Mesh kMesh{{{"tp", 2}}};

double time(const OpCase &c, int choice, const Machine &machine,
            Precision precision = Precision::fp16) {
  return computeTime(c.op, {{choice}}, c.tensors, kMesh, machine,
                     defaultSoftware(), precision)
      .value;
}

TEST(ComputeTime, FullWavesRunAtTheReachedRate) {
  // 100 tiles of 10 x 10 x 100000 have 2e9 flops, 4 ms at half of 1 Tflop/s.
  // The bytes, 2 * (2 * 100 * 1e5 + 1e4), take 80 ms at half of 1 GB/s.
  OpCase c = product(100, 100, 100'000);
  EXPECT_DOUBLE_EQ(time(c, kReplicated, roundMachine()), 0.04002e9 / 0.5e9);
  Machine machine = roundMachine();
  machine.device.bandwidth = BytesPerSec{1e15};
  EXPECT_DOUBLE_EQ(time(c, kReplicated, machine), 4e-3);
}

Machine fastMemory() {
  Machine machine = roundMachine();
  machine.device.bandwidth = BytesPerSec{1e18};
  return machine;
}

TEST(ComputeTime, APartialWaveTakesAsLongAsAFullOne) {
  // 110 tiles are two waves of 100 units, and take as long as 200 tiles.
  double two = time(product(110, 100, 10'000), kReplicated, fastMemory());
  EXPECT_DOUBLE_EQ(two,
                   time(product(200, 100, 10'000), kReplicated, fastMemory()));
  // 2 waves * 100 units * 100 elements * 20000 flops take 0.8 ms at 0.5
  // Tflop/s.
  EXPECT_DOUBLE_EQ(two, 0.8e-3);
  // 105 rows need 11 rows of tiles, as 110 do.
  EXPECT_DOUBLE_EQ(two,
                   time(product(105, 100, 10'000), kReplicated, fastMemory()));
}

TEST(ComputeTime, IdleUnitsShareALongContraction) {
  // 50 tiles on 100 units have two units each, one for each half of k.
  EXPECT_DOUBLE_EQ(time(product(50, 100, 10'000), kReplicated, fastMemory()),
                   0.2e-3);
  // 60 tiles leave too few units for a second unit per tile.
  EXPECT_DOUBLE_EQ(time(product(60, 100, 10'000), kReplicated, fastMemory()),
                   0.4e-3);
  // A unit computes at least 512 of k, so k = 600 takes as long as k = 512: 100
  // units * 100 elements * 2 * 512 flops at 0.5 Tflop/s.
  EXPECT_DOUBLE_EQ(time(product(50, 100, 600), kReplicated, fastMemory()),
                   20.48e-6);
  // A shorter k is not split: 100 units * 100 elements * 2 * 30 flops.
  EXPECT_DOUBLE_EQ(time(product(50, 100, 30), kReplicated, fastMemory()),
                   1.2e-6);
}

TEST(ComputeTime, ASplitFactorTakesItsShare) {
  OpCase c = product(200, 200, 10'000); // 4 waves, 1.6 ms
  EXPECT_DOUBLE_EQ(time(c, kReplicated, fastMemory()), 1.6e-3);
  for (int factor : {kM, kN, kK})
    EXPECT_DOUBLE_EQ(time(c, factor, fastMemory()), 0.8e-3) << factor;
}

TEST(ComputeTime, ALinearGroupWorksOnReplicatedOperands) {
  OpCase c = product(200, 200, 10'000);
  EXPECT_DOUBLE_EQ(time(c, kLinear, roundMachine()),
                   time(c, kReplicated, roundMachine()));
}

TEST(ComputeTime, SinglePrecisionHasItsOwnPeak) {
  OpCase c = product(200, 200, 10'000, 4);
  EXPECT_DOUBLE_EQ(time(c, kReplicated, fastMemory(), Precision::fp32), 16e-3);
}

TEST(ComputeTime, BatchedProductsAreTiledOneByOne) {
  // 5 products of 5 x 5 need a tile each, and each tile is padded to 10 x 10.
  // If 20 units shared a tile, each would compute 500 of k, but the minimum is
  // 512.
  OpCase c = product(5, 5, 10'000);
  c.op.factors.push_back({"h", 5, Split::head, true, Reduction::sum, 0.0});
  c.op.batch = {3};
  c.op.operands = {{0, {3, kM, kK}}, {1, {3, kK, kN}}};
  c.op.results = {{2, {3, kM, kN}}};
  c.tensors = {tensor({5, 5, 10'000}), tensor({5, 10'000, 5}),
               tensor({5, 5, 5})};
  c.op.flops = Flops{5 * 2.0 * 5 * 5 * 10'000};
  // 100 units * 100 elements * 2 * 512 flops take 20.48 us at 0.5 Tflop/s.
  EXPECT_DOUBLE_EQ(time(c, kReplicated, fastMemory()), 20.48e-6);
}

TEST(ComputeTime, MemoryOperatorsReadAndWriteTheirShards) {
  OpCase c;
  c.op.factors = {{"b", 1000, Split::batch, true, Reduction::sum, 0.0},
                  {"h", 500, Split::hidden, true, Reduction::sum, 0.0}};
  c.op.operands = {{0, {0, 1}}, {1, {1}}};
  c.op.results = {{2, {0, 1}}};
  c.op.flops =
      Flops{1e15}; // no effect, because such operators are bound by memory
  c.tensors = {tensor({1000, 500}), tensor({500}), tensor({1000, 500}, 4)};
  Machine machine = roundMachine();
  machine.device.launch = Seconds{1e-3};
  // The operator moves 1 MB + 1 kB + 2 MB at half of 1 GB/s, after a launch.
  EXPECT_DOUBLE_EQ(time(c, kReplicated, machine), 3.001e6 / 0.5e9 + 1e-3);
  // Both halves of the batch read all 500 elements of the gain.
  EXPECT_DOUBLE_EQ(time(c, 0, machine), 1.501e6 / 0.5e9 + 1e-3);
}

// Returns a memory-bound operator over 1000 x 500 elements of 2 bytes, 1 MB.
OpCase pass(PassKind kind, Phase phase) {
  OpCase c;
  c.op.pass = kind;
  c.op.phase = phase;
  c.op.factors = {{"b", 1000, Split::batch, true, Reduction::sum, 0.0},
                  {"h", 500, Split::hidden, true, Reduction::sum, 0.0}};
  c.op.operands = {{0, {0, 1}}, {1, {1}}};
  c.op.results = {{2, {0, 1}}};
  c.tensors = {tensor({1000, 500}), tensor({500}), tensor({1000, 500})};
  return c;
}

TEST(ComputeTime, PassesMoveTheSoftwaresBytes) {
  Software software;
  software.passes.layerNorm = {4, 6, 1, 2};
  software.passes.rmsNorm = {16, 24, 6, 9};
  software.passes.residual = {3, 5, 1, 1};
  software.passes.activation = {7, 9, 1, 1};
  software.passes.gated = {10, 18, 2, 3};
  software.passes.rope = {20, 21, 12, 12};
  software.passes.dropout = {0, 1, 0, 1};
  software.passes.biasGradient = {8, 2, 1, 1};
  software.crossEntropy = 40;
  Machine machine = roundMachine();
  machine.device.elementwiseEfficiency = 0.8; // 0.4 GB/s
  machine.device.launch = Seconds{1e-3};
  // One byte for each of 0.5 million elements takes 1.25 ms at 0.4 GB/s.
  auto at = [&](PassKind kind, Phase phase) {
    OpCase c = pass(kind, phase);
    return computeTime(c.op, {{kReplicated}}, c.tensors, kMesh, machine,
                       software, Precision::fp16)
               .value *
           1e3;
  };
  Phase forward = Phase::forward, backward = Phase::backward;
  EXPECT_DOUBLE_EQ(at(PassKind::layerNorm, forward), 4 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::layerNorm, backward), 6 * 1.25 + 2);
  EXPECT_DOUBLE_EQ(at(PassKind::rmsNorm, forward), 16 * 1.25 + 6);
  EXPECT_DOUBLE_EQ(at(PassKind::rmsNorm, backward), 24 * 1.25 + 9);
  EXPECT_DOUBLE_EQ(at(PassKind::residual, forward), 3 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::residual, backward), 5 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::activation, forward), 7 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::activation, backward), 9 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::gated, forward), 10 * 1.25 + 2);
  EXPECT_DOUBLE_EQ(at(PassKind::gated, backward), 18 * 1.25 + 3);
  EXPECT_DOUBLE_EQ(at(PassKind::rope, backward), 21 * 1.25 + 12);
  EXPECT_DOUBLE_EQ(at(PassKind::dropout, forward), 0);
  EXPECT_DOUBLE_EQ(at(PassKind::dropout, backward), 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::biasGradient, backward), 2 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::logitsRead, forward), 10 * 1.25 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::logitsGradient, backward), 20 * 1.25 + 1);
  // A kind without figures in the software moves its operands and result: 1 MB,
  // 1 kB and 1 MB at 0.4 GB/s.
  EXPECT_DOUBLE_EQ(at(PassKind::traffic, forward), 2.001e6 / 0.4e9 * 1e3 + 1);
  EXPECT_DOUBLE_EQ(at(PassKind::biasGradient, forward),
                   2.001e6 / 0.4e9 * 1e3 + 1);
}

TEST(ComputeTime, PassesOverWideElementsMoveMore) {
  Software software;
  software.passes.residual = {3, 5, 1, 1};
  OpCase c = pass(PassKind::residual, Phase::forward);
  c.tensors[0].elementBytes = c.tensors[2].elementBytes = 4;
  // A rank's half of the batch has 1 MB of the 2 MB. The kernel moves 3 bytes
  // for every 2 bytes of the tensor.
  EXPECT_DOUBLE_EQ(computeTime(c.op, {{0}}, c.tensors, kMesh, roundMachine(),
                               software, Precision::fp32)
                       .value,
                   1.5e6 / 0.5e9);
}

TEST(ComputeTime, ABlockingLaunchReplacesTheGap) {
  Software software;
  software.passes.residual = {3, 5, 2, 1};
  software.blockingLaunch = Seconds{0.1};
  Machine machine = fastMemory();
  machine.device.launch = Seconds{1e-3};
  auto at = [&](const OpCase &c) {
    return computeTime(c.op, {{kReplicated}}, c.tensors, kMesh, machine,
                       software, Precision::fp16)
        .value;
  };
  EXPECT_NEAR(at(pass(PassKind::residual, Phase::forward)), 0.2, 1e-9);
  EXPECT_NEAR(at(product(100, 100, 10'000)), 0.1 + 0.4e-3, 1e-9);
}

TEST(ComputeTime, ACausalSplitLeavesTheLastRankMoreWork) {
  OpCase c;
  c.op.opClass = OpClass::attention;
  c.op.factors = {{"s", 100, Split::sequence, true, Reduction::sum, 1.0},
                  {"h", 10, Split::head, true, Reduction::sum, 0.0}};
  c.op.operands = {{0, {0, 1}}};
  c.op.results = {{1, {0, 1}}};
  c.op.flops = Flops{1e9};
  c.tensors = {tensor({100, 10}), tensor({100, 10})};
  // 1 Gflop takes 4 ms at a quarter of 1 Tflop/s.
  EXPECT_DOUBLE_EQ(time(c, kReplicated, fastMemory()), 4e-3);
  EXPECT_DOUBLE_EQ(time(c, 1, fastMemory()), 2e-3);
  // The second of two ranks computes three quarters of the causal triangle.
  EXPECT_DOUBLE_EQ(time(c, 0, fastMemory()), 3e-3);
}

TEST(ComputeLowerBound, DividesTheWorkEvenly) {
  OpCase c = product(100, 100, 100'000);
  Machine machine = fastMemory();
  machine.device.launch = Seconds{1e-3};
  EXPECT_DOUBLE_EQ(computeLowerBound(c.op, c.tensors, 4, machine,
                                     defaultSoftware(), Precision::fp16)
                       .value,
                   1e-3 + 1e-3);
}

TEST(ComputeLowerBound, NoStrategyIsFaster) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 rng(seed);
    auto size = [&] {
      return static_cast<std::int64_t>(8 * (1 + rng() % 100));
    };
    OpCase c = product(size(), size(), size());
    if (rng() % 3 == 0) {
      c.op.opClass = OpClass::attention;
      c.op.factors[kM].skew = 1;
    }
    Mesh mesh{{{"dp", 2}, {"tp", 4}}};
    AxisRule any{{Split::batch, Split::row, Split::column}, true};
    Machine machine = rng() % 2 == 0 ? roundMachine() : fastMemory();
    double bound = computeLowerBound(c.op, c.tensors, 8, machine,
                                     defaultSoftware(), Precision::fp16)
                       .value;
    for (const Strategy &s : strategiesOf(c.op, mesh, {any, any}))
      EXPECT_LE(bound, computeTime(c.op, s, c.tensors, mesh, machine,
                                   defaultSoftware(), Precision::fp16)
                               .value *
                           (1 + 1e-12));
  }
}

TEST(ComputeTime, MoreOfAnyDimensionNeverTakesLess) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 rng(seed);
    auto size = [&] { return static_cast<std::int64_t>(1 + rng() % 500); };
    std::int64_t m = size(), n = size(), k = size();
    Machine machine = rng() % 2 == 0 ? roundMachine() : fastMemory();
    double before = time(product(m, n, k), kReplicated, machine) * (1 - 1e-12);
    EXPECT_GE(time(product(m + 1, n, k), kReplicated, machine), before);
    EXPECT_GE(time(product(m, n + 1, k), kReplicated, machine), before);
    EXPECT_GE(time(product(m, n, k + 1), kReplicated, machine), before);
  }
}

} // namespace
