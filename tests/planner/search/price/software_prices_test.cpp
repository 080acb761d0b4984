//===- software_prices_test.cpp - Traffic of parameters and tensors -------===//

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "planner/search/price/phase_times.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

constexpr double kNano = 1e-9;

// Prices a weight of [16, 8] on 2 x 2 ranks. A byte takes 1 ns.
class SoftwarePrices : public testing::Test {
protected:
  SoftwarePrices() {
    setting.mesh = meshOf(2, 2);
    setting.machine = &machine;
    setting.software = &software;
    setting.microBatches = 3;
    parameter.shape = {16, 8};
    parameter.splits = {Split::row, Split::column};
    split.stored = withPlacement(Layout::replicated(2), kTensorAxis, 0);
  }

  Machine machine = roundMachine();
  Software software;
  Setting setting;
  Parameter parameter;
  ParameterState split;
};

// A tensor rank has 64 of the 128 weights.
TEST_F(SoftwarePrices, GradientsAreAddedAfterTheFirstMicroBatch) {
  software.parameters.accumulation = 6;
  EXPECT_DOUBLE_EQ(accumulationTime(parameter, split, setting).value,
                   2 * 64 * 6 * kNano);
  setting.precision = Precision::fp32;
  EXPECT_DOUBLE_EQ(accumulationTime(parameter, split, setting).value,
                   2 * 64 * 12 * kNano);
  machine.device.elementwiseEfficiency = 0.5;
  EXPECT_DOUBLE_EQ(accumulationTime(parameter, split, setting).value,
                   4 * 64 * 12 * kNano);
}

// mtplan's kernels move 6 bytes per weight in the first micro-batch (read 2,
// store 4) and 10 in each of the other two (read 2 + 4, store 4), at 1 GB/s;
// the update moves 8 at 2 GB/s. A rank has 64 weights.
TEST_F(SoftwarePrices, TheFirstMeasuredGradientIsStored) {
  software.name = machine.device.kernels.software = "mtplan";
  auto &passes = machine.device.kernels.passes;
  const auto rate = [](double bytes) {
    return std::array{BytesPerSec{}, BytesPerSec{}, BytesPerSec{bytes}};
  };
  passes["accumulate"] = rate(1e9);
  EXPECT_DOUBLE_EQ(accumulationTime(parameter, split, setting).value,
                   64 * (6 + 2 * 10) * kNano);
  software.parameters.optimizer = 0;
  software.parameters.sweep = 8;
  passes["adamw"] = rate(2e9);
  EXPECT_DOUBLE_EQ(updateTime(parameter, split, setting).value,
                   64 * 8 / 2.0 * kNano);
}

// A rank owns 32 of its 64 weights. The update includes the squares of their
// gradients, at 1 GB/s, the rate of memory-bound kernels, or at 4 GB/s, the
// measured rate of mtplan's kernels.
TEST_F(SoftwarePrices, TheNormReadsTheOwnedGradients) {
  EXPECT_EQ(squaresTime(parameter, split, setting).value, 0);
  split.optimizer = withPlacement(split.stored, kDataAxis, 1);
  const double without = updateTime(parameter, split, setting).value;
  software.parameters.normReads = 1;
  EXPECT_DOUBLE_EQ(squaresTime(parameter, split, setting).value,
                   32 * 2 * kNano);
  EXPECT_DOUBLE_EQ(updateTime(parameter, split, setting).value,
                   without + 32 * 2 * kNano);
  software.parameters.gradient = 4;
  software.name = machine.device.kernels.software = "mtplan";
  machine.device.kernels.passes["square_sum"] = {BytesPerSec{}, BytesPerSec{},
                                                 BytesPerSec{4e9}};
  EXPECT_DOUBLE_EQ(squaresTime(parameter, split, setting).value,
                   32 * 4 / 4.0 * kNano);
}

// If the messages of a segment are grouped, a parameter with a quarter of the
// segment's weights takes a quarter of the messages' time. A separate message
// takes longer, because it has its own latency.
TEST_F(SoftwarePrices, MessagesOfASegmentAreGrouped) {
  machine = roundMachine(8e-6);
  machine.device.name = "one";
  setting.updateAddsUp = false;
  split.optimizer = withPlacement(split.stored, kDataAxis, 1);
  Parameter replicated = parameter;
  replicated.shape = {64, 8};
  const double all = parameterCost(replicated, split, setting).time;
  parameter.ofSegment = 0.25;
  const double alone = parameterCost(parameter, split, setting).time;
  EXPECT_GT(alone, 1.5 * all / 4);
  software.fusions.messages = true;
  EXPECT_EQ(parameterCost(parameter, split, setting).time, alone)
      << "on devices that are not listed";
  software.fusions.devices = {"one"};
  EXPECT_DOUBLE_EQ(parameterCost(parameter, split, setting).time, all / 4);
}

// A weight is stored as quarters and gathered to halves, so copies have the
// size of halves.
TEST_F(SoftwarePrices, SplitWeightsAreCopiedEachMicroBatch) {
  software.parameters.accumulation = 0;
  software.parameters.shardCopies = 14;
  EXPECT_EQ(accumulationTime(parameter, split, setting).value, 0);
  setting.zeroStage = 3;
  split.stored = withPlacement(split.stored, kDataAxis, 1);
  EXPECT_DOUBLE_EQ(accumulationTime(parameter, split, setting).value,
                   3 * 64 * 14 * kNano);
}

// A rank stores 64 weights and owns the optimizer state of 32. The update moves
// 50 bytes per owned weight and 6 bytes per stored weight.
TEST_F(SoftwarePrices, TheUpdateTouchesOwnedStateAndSweepsTheRest) {
  software.parameters.optimizer = 50;
  software.parameters.sweep = 6;
  split.optimizer = withPlacement(split.stored, kDataAxis, 1);
  EXPECT_DOUBLE_EQ(updateTime(parameter, split, setting).value,
                   (32 * 50 + 64 * 6) * kNano);
}

TEST_F(SoftwarePrices, GradientsAreAsWideAsTheSoftwareKeepsThem) {
  software.parameters.gradient = 4;
  EXPECT_EQ(stateBytesOf(setting).gradient, 4);
  EXPECT_EQ(parameterCost(parameter, split, setting).memory, 64 * (2 + 4 + 12));
  setting.precision = Precision::fp32;
  EXPECT_EQ(stateBytesOf(setting).gradient, 4);
  EXPECT_EQ(stateBytesOf(setting).optimizer, 8);
  setting.precision = Precision::bf16;
  software.parameters.gradient = 2;
  EXPECT_EQ(stateBytesOf(setting).gradient, 2);
}

// An all-gather over two ranks of 128 B to 256 B sends 128 B; a copy reads and
// writes 256 B; an all-reduce of 256 B sends 256 B.
TEST_F(SoftwarePrices, TensorCollectivesAreCopiedAndHidden) {
  Layout replicated = Layout::replicated(3);
  Layout shard = withPlacement(replicated, kTensorAxis, 1);
  auto exposed = [&](const Layout &from, const Layout &to, Phase phase) {
    std::vector<ReshardStep> steps = reshardSteps(from, to);
    EXPECT_EQ(steps.size(), 1U);
    return exposedTime(steps[0], localElements({1, 8, 16}, from, setting.mesh),
                       2, phase, setting)
               .value /
           kNano;
  };
  EXPECT_DOUBLE_EQ(exposed(shard, replicated, Phase::forward), 128);
  software.tensor = {
      .copies = 1.0, .hiddenForward = 0.25, .hiddenBackward = 0.5};
  EXPECT_DOUBLE_EQ(exposed(shard, replicated, Phase::forward), 640 * 0.75);
  EXPECT_DOUBLE_EQ(exposed(shard, replicated, Phase::backward), 640 * 0.5);
  Layout partial = withPlacement(replicated, kTensorAxis, kPartial);
  EXPECT_DOUBLE_EQ(exposed(partial, replicated, Phase::forward), 768 * 0.75);
  EXPECT_DOUBLE_EQ(exposed(partial, shard, Phase::forward), 640 * 0.75);
  // A slice is no collective, so it is neither copied nor hidden. The figures
  // of tensor collectives do not apply to the data axis.
  EXPECT_DOUBLE_EQ(exposed(replicated, shard, Phase::forward), 256);
  EXPECT_DOUBLE_EQ(exposed(withPlacement(replicated, kDataAxis, 1), replicated,
                           Phase::forward),
                   128);
}

TEST_F(SoftwarePrices, ADomainHasAPricePerPhaseWhereTheyDiffer) {
  LayoutDomain domain;
  Layout replicated = Layout::replicated(3);
  int shard = domain.add(withPlacement(replicated, kTensorAxis, 1));
  int all = domain.add(replicated);
  software.tensor = {.hiddenForward = 0.25, .hiddenBackward = 0.5};
  domain.price({1, 8, 16}, 2, true, setting);
  EXPECT_DOUBLE_EQ(domain.between(shard, all), 96 * kNano);
  EXPECT_DOUBLE_EQ(domain.between(shard, all, Phase::backward), 64 * kNano);
  const auto price = [&](Phase phase) {
    return ConversionTrees(domain, phase)
        .prices(setOf(all))[static_cast<std::size_t>(shard)];
  };
  EXPECT_DOUBLE_EQ(price(Phase::forward), 96 * kNano);
  EXPECT_DOUBLE_EQ(price(Phase::backward), 64 * kNano);
  // The collectives of a parameter are not hidden.
  domain.price({1, 8, 16}, 2, false, setting);
  EXPECT_DOUBLE_EQ(domain.between(shard, all), 128 * kNano);
  EXPECT_DOUBLE_EQ(domain.between(shard, all, Phase::backward), 128 * kNano);
}

// A reduction in 16 bits would round at every hop.
TEST_F(SoftwarePrices, NoReplicated16BitValueBecomesPartial) {
  LayoutDomain domain;
  const Layout layout = Layout::replicated(3);
  const int replicated = domain.add(layout);
  const int shard = domain.add(withPlacement(layout, kTensorAxis, 1));
  const int partial = domain.add(withPlacement(layout, kTensorAxis, kPartial));
  domain.price({1, 8, 16}, 2, true, setting);
  EXPECT_TRUE(std::isinf(domain.between(replicated, partial)));
  EXPECT_TRUE(std::isinf(domain.between(shard, partial)));
  EXPECT_TRUE(std::isfinite(domain.between(partial, replicated)));
  domain.price({1, 8, 16}, 4, true, setting);
  EXPECT_TRUE(std::isfinite(domain.between(replicated, partial)));
}

// Measurements on a device take precedence over the software's file.
TEST_F(SoftwarePrices, FusionsDependOnTheDevice) {
  software.name = "soft";
  software.fusions = {{"new", "one"}, {{{"dropout+add"}, {}, {"add"}}}};
  Device device;
  EXPECT_FALSE(isFused(software, device, "add", Precision::bf16));
  device.architecture = "new";
  EXPECT_TRUE(isFused(software, device, "add", Precision::bf16));
  EXPECT_TRUE(isFused(software, device, "add", Precision::fp8));
  EXPECT_TRUE(isFused(software, device, "dropout+add", Precision::fp32));
  EXPECT_FALSE(isFused(software, device, "dropout+add", Precision::bf16));
  device.architecture = "";
  device.name = "one";
  EXPECT_TRUE(isFused(software, device, "add", Precision::bf16));
  device.kernels.software = "soft";
  EXPECT_FALSE(isFused(software, device, "add", Precision::bf16));
}

} // namespace
} // namespace mtplan::planner
