//===- attention_cost_test.cpp - Attention kernels by hand ----------------===//

#include <gtest/gtest.h>

#include "planner/cost/compute_cost.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "tests/planner/cost/op_case.h"
#include "tests/planner/plain_times.h"

namespace mtplan::planner {
namespace {

constexpr double kNano = 1e-9;
const Mesh kMesh{{{"tp", 2}}};
enum : int { kB, kS, kG };

// Returns a device of 1 Tflop/s and 1 TB/s. Memory-bound kernels reach half of
// the bandwidth, and batched products run at half rate.
Machine roundMachine() {
  Machine machine;
  Device &device = machine.device;
  device.name = "device";
  device.architecture = "new";
  device.bandwidth = BytesPerSec{1e12};
  device.elementwiseEfficiency = 0.5;
  device.products.batched = 0.5;
  device.attentionEfficiency = 0.125;
  device.fp16 = FlopsPerSec{1e12};
  device.fp32 = FlopsPerSec{1e12};
  return machine;
}

double time(const OpCase &c, int choice, const Machine &machine,
            const Software &software, Precision precision = Precision::fp16) {
  return computeTime(c.op, {{choice}}, c.tensors, kMesh, machine, software,
                     precision)
      .value;
}

Software fusedKernel() {
  Software software;
  software.attention.headSizes = {32, 64};
  software.attention.rates = {{"new", 0.5, 0.25}};
  return software;
}

// 8 heads of 48 features and 256 positions have 2 * 2 * 8 * 256 * 256 * 48 / 2
// flops. Blocks on the diagonal are computed in full, which multiplies the
// flops by 1.5. Padding of heads to 64 features multiplies them by 4 / 3.
TEST(FusedAttention, ComputesPaddedHeadsAndTheDiagonal) {
  OpCase forward = attentionCase(2, 256, 4, 1, 48, Phase::forward, true);
  EXPECT_NEAR(time(forward, kReplicated, roundMachine(), fusedKernel()),
              2 * 50'331'648 / 0.5e12, 1e-15);
  OpCase backward = attentionCase(2, 256, 4, 1, 48, Phase::backward, true);
  EXPECT_NEAR(time(backward, kReplicated, roundMachine(), fusedKernel()),
              2 * 125'829'120 / 0.25e12, 1e-15);
  // Attention without a mask has twice the flops. Padding multiplies them by 64
  // / 48.
  OpCase all = attentionCase(2, 256, 4, 1, 48, Phase::forward, false);
  EXPECT_NEAR(time(all, kReplicated, roundMachine(), fusedKernel()),
              134'217'728 / 0.5e12, 1e-15);
  // Two ranks share the heads; four query heads per key head are four times the
  // work.
  EXPECT_NEAR(time(forward, kG, roundMachine(), fusedKernel()),
              50'331'648 / 0.5e12, 1e-15);
  OpCase grouped = attentionCase(2, 256, 4, 4, 48, Phase::forward, true);
  EXPECT_NEAR(time(grouped, kReplicated, roundMachine(), fusedKernel()),
              8 * 50'331'648 / 0.5e12, 1e-15);
}

TEST(FusedAttention, HeadsAreCutToSizesOfTheKernel) {
  AttentionKernel kernel;
  kernel.headSizes = {32, 64, 128};
  EXPECT_EQ(paddedHead(kernel, 16), 32);
  EXPECT_EQ(paddedHead(kernel, 64), 64);
  EXPECT_EQ(paddedHead(kernel, 80), 128);
  EXPECT_EQ(paddedHead(kernel, 200), 256);
}

TEST(FusedAttention, RatesComeFromDeviceThenArchitectureThenMachine) {
  Device device = roundMachine().device;
  Software software = fusedKernel();
  EXPECT_EQ(attentionRateOf(software, device, Precision::bf16).forward, 0.5);
  software.attention.rates.push_back({"device", 0.75, 0.7});
  EXPECT_EQ(attentionRateOf(software, device, Precision::bf16).forward, 0.75);
  EXPECT_EQ(attentionRateOf(software, device, Precision::bf16).backward, 0.7);
  software.attention.rates.clear();
  EXPECT_EQ(attentionRateOf(software, device, Precision::bf16).forward, 0.125);
  EXPECT_EQ(attentionRateOf(software, device, Precision::bf16).backward, 0.125);
  // An empty architecture name matches no rate.
  device.architecture.clear();
  software.attention.rates = {{"", 1.0, 1.0}};
  EXPECT_EQ(attentionRateOf(software, device, Precision::bf16).forward, 0.125);
}

// Rates measured with dropout apply where they exist, also in the lower bound.
TEST(FusedAttention, DropoutHasItsOwnRates) {
  Machine machine = roundMachine();
  Software software = fusedKernel();
  OpCase drops = attentionCase(2, 256, 4, 1, 64, Phase::forward, false);
  const double plain = time(drops, kReplicated, machine, software);
  drops.op.variant = kDropout;
  EXPECT_EQ(time(drops, kReplicated, machine, software), plain);
  machine.device.kernels.software = software.name = "ours";
  machine.device.kernels.droppingAttention[storedAs(Precision::fp16)] = {0.25,
                                                                         0.125};
  EXPECT_DOUBLE_EQ(time(drops, kReplicated, machine, software), 2 * plain);
  EXPECT_DOUBLE_EQ(computeLowerBound(drops.op, drops.tensors, 2, machine,
                                     software, Precision::fp16)
                       .value,
                   plain);
  drops.op.variant.clear();
  EXPECT_EQ(time(drops, kReplicated, machine, software), plain);
}

TEST(FusedAttention, AddsCopiesAroundTheKernel) {
  Software software = fusedKernel();
  software.attention.copyForward = 36;
  // The copies move 36 bytes for each of 2 * 256 * 192 query elements at 0.5
  // TB/s.
  EXPECT_NEAR(time(attentionCase(2, 256, 4, 1, 48, Phase::forward, true),
                   kReplicated, roundMachine(), software),
              2 * 50'331'648 / 0.5e12 + 98'304 * 36 / 0.5e12, 1e-15);
}

struct Row {
  const char *software, *machine;
  std::int64_t samples, heads, headSize, positions;
  double forward, backward; // us
};

// The program of docs/studies/step-time gives these values.
constexpr Row kStudy[] = {
    {"fms", "dgx-a100-80g", 2, 8, 128, 4096, 428.5617, 1488.0614},
    {"mosaic", "dgx-a100-80g", 4, 16, 80, 2048, 557.1920, 2143.0463},
    {"nemo-24", "dgx-h100", 1, 8, 128, 8192, 227.6435, 790.4288},
};

TEST(FusedAttention, EqualsTheStudy) {
  for (const Row &row : kStudy) {
    Machine machine = loadMachine(row.machine);
    machine.device.launch = {};
    Software software = loadSoftware(row.software);
    for (Phase phase : {Phase::forward, Phase::backward}) {
      double expected = phase == Phase::forward ? row.forward : row.backward;
      EXPECT_NEAR(time(attentionCase(row.samples, row.positions, row.heads, 1,
                                     row.headSize, phase, true),
                       kReplicated, machine, software, Precision::bf16) *
                      1e6,
                  expected, 1e-3 * expected)
          << row.software;
    }
  }
}

Software scoreKernel() {
  Software software;
  software.attention.keepsScores = true;
  software.attention.copyForward = 8;
  software.attention.copyBackward = 12;
  software.attention.scores = {3, 6, 28, 24, 5, 5, 4, 8};
  return software;
}

// Forward of four heads of 4 features and 8 positions has two batched products
// of 2 * 4 * 8 * 8 * 4 flops at 0.5 Tflop/s. At 0.5 TB/s, it moves 3 + 5 bytes
// for each of 256 scores and 8 bytes for each of 128 query elements. Backward
// has four products and moves 6 + 5 bytes per score and 12 per query element.
TEST(ScoreAttention, TakesProductsAndPassesOverScores) {
  Machine machine = roundMachine();
  EXPECT_NEAR(time(attentionCase(1, 8, 4, 1, 4, Phase::forward, true),
                   kReplicated, machine, scoreKernel()),
              (8.192 + 4.096 + 2.048) * kNano, 1e-18);
  EXPECT_NEAR(time(attentionCase(1, 8, 4, 1, 4, Phase::backward, true),
                   kReplicated, machine, scoreKernel()),
              (16.384 + 5.632 + 3.072) * kNano, 1e-18);
}

// If samples times heads is no multiple of four, the softmax is not fused and
// attention moves 28 + 5 bytes per score.
TEST(ScoreAttention, TheSoftmaxIsFusedForSomeShapesOnly) {
  Machine machine = roundMachine();
  Software software = scoreKernel();
  EXPECT_NEAR(time(attentionCase(1, 8, 3, 1, 4, Phase::forward, true),
                   kReplicated, machine, software),
              (6.144 + 12.672 + 1.536) * kNano, 1e-18);
  // A rank with two of four heads cannot fuse the softmax. With two samples,
  // samples times heads is four again.
  EXPECT_NEAR(time(attentionCase(1, 8, 4, 1, 4, Phase::forward, true), kG,
                   machine, software),
              (4.096 + 8.448 + 1.024) * kNano, 1e-18);
  EXPECT_NEAR(time(attentionCase(2, 8, 4, 1, 4, Phase::forward, true), kG,
                   machine, software),
              (8.192 + 4.096 + 2.048) * kNano, 1e-18);
  // The fused softmax is limited to `fusedLongest` positions.
  software.attention.scores.fusedLongest = 7;
  EXPECT_NEAR(time(attentionCase(1, 8, 4, 1, 4, Phase::forward, true),
                   kReplicated, machine, software),
              (8.192 + 16.896 + 2.048) * kNano, 1e-18);
}

TEST(ScoreAttention, SavesItsScoresForBackward) {
  auto kept = [](const OpCase &c, int choice, const Software &software,
                 Precision precision = Precision::fp16) {
    return savedBeside(c.op, {{choice}}, c.tensors, kMesh, software, precision)
        .value;
  };
  OpCase forward = attentionCase(2, 8, 4, 1, 4, Phase::forward, true);
  EXPECT_EQ(kept(forward, kReplicated, scoreKernel()), 2 * 4 * 64 * 5);
  EXPECT_EQ(kept(forward, kG, scoreKernel()), 4 * 64 * 5);
  EXPECT_EQ(kept(forward, kS, scoreKernel()), 4 * 64 * 5);
  EXPECT_EQ(kept(forward, kReplicated, scoreKernel(), Precision::fp32),
            2 * 4 * 64 * 10);
  EXPECT_EQ(kept(forward, kReplicated, fusedKernel()), 0);
  EXPECT_EQ(kept(attentionCase(2, 8, 4, 1, 4, Phase::backward, true),
                 kReplicated, scoreKernel()),
            0);
}

} // namespace
} // namespace mtplan::planner
