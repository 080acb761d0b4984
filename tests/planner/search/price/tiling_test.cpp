//===- tiling_test.cpp - Weights in tiles, counted by hand ----------------===//
//
// Two replicas compute one product and share the weight by ZeRO-3. At 1 GB/s
// and 1 Gflop/s, a byte of traffic and a flop take 1 ns each. G8 is the number
// of a check in docs/closed-forms.md.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/space/segment_runs.h"
#include "tests/planner/search/space/space_case.h"

namespace mtplan::planner {
namespace {

constexpr double kNano = 1e-9;

enum Tensors : int { kX, kW, kY, kDy, kDw };
enum Factors : int { kB, kI, kO };

// The model is y = x w with x [4, 16] and w [16, 8]; backward computes w.dw.
// Each rank has two samples and half of the rows of w.
class Tiling : public testing::Test {
protected:
  Tiling() {
    setting.mesh = meshOf(2, 1);
    setting.machine = &machine;
    setting.zeroStage = 3;
    machine.device.launch = Seconds{10 * kNano};
    model.parameters = {{"w", {16, 8}, {Split::row, Split::column}}};
    model.parameters[0].elementBytes = 2;
    SegmentGraph segment;
    auto add = [&](const char *name, std::vector<std::int64_t> shape,
                   TensorKind kind, Phase phase) {
      Tensor tensor;
      tensor.name = name;
      tensor.shape = std::move(shape);
      tensor.kind = kind;
      tensor.phase = phase;
      tensor.elementBytes = 2;
      segment.tensors.push_back(tensor);
    };
    add("x", {4, 16}, TensorKind::input, Phase::forward);
    add("w", {16, 8}, TensorKind::parameter, Phase::forward);
    add("y", {4, 8}, TensorKind::activation, Phase::forward);
    add("y.dy", {4, 8}, TensorKind::input, Phase::backward);
    add("w.dw", {16, 8}, TensorKind::activation, Phase::backward);
    segment.tensors[kW].parameter = 0;
    auto op = [&](Phase phase, std::vector<Use> operands, Use result) {
      Op made;
      made.phase = phase;
      made.opClass = OpClass::gemm;
      made.factors = {{"b", 4, Split::batch},
                      {"i", 16, Split::row},
                      {"o", 8, Split::column}};
      made.operands = std::move(operands);
      made.results = {std::move(result)};
      made.flops = Flops{1024}; // 2 * 4 * 16 * 8
      segment.ops.push_back(made);
      return &segment.ops.back();
    };
    Op *product =
        op(Phase::forward, {{kX, {kB, kI}}, {kW, {kI, kO}}}, {kY, {kB, kO}});
    product->m = {kB}, product->k = {kI}, product->n = {kO};
    Op *gradient =
        op(Phase::backward, {{kX, {kB, kI}}, {kDy, {kB, kO}}}, {kDw, {kI, kO}});
    gradient->m = {kI}, gradient->k = {kB}, gradient->n = {kO};
    segment.accumulations = {{kDw, 0}};
    model.segments = {segment};

    Layout rows{{{0}, {}}, {}, Reduction::sum}, untiled = Layout::replicated(2);
    Layout terms{{{}, {}}, {0}, Reduction::sum};
    plan.strategies = {{{kB, kReplicated}}, {{kB, kReplicated}}};
    plan.made.resize(5);
    plan.saved.resize(5);
    plan.made[kW] = rows;
    plan.made[kY] = rows;
    plan.made[kDw] = terms;
    plan.parameters = {ParameterState{rows, {}, {}, true}};
    plan.conversions = {{kW, Phase::forward, rows, untiled},
                        {kDw, Phase::backward, terms, rows}};
  }

  PhaseTimes times() const {
    std::vector<bool> paid(1, false);
    return phaseTimesOf(model, plan, setting, paid);
  }

  // Overlaps no communication with compute.
  void hidesNothing() {
    apart = defaultSoftware();
    apart.overlap = {};
    setting.software = &apart;
  }

  Machine machine = roundMachine();
  Software apart;
  Setting setting;
  ModelGraph model;
  SegmentPlan plan;
};

// G8: x (64 B) and dy (32 B) are held throughout. Forward adds y (32 B) and a
// tile of the gathered weight, 64 of its 256 B. Backward adds a tile of the
// weight's gradient, 64 of its 256 B, and of the gradient's reduced shard, 32
// of its 128 B.
TEST_F(Tiling, HoldsATileOfTheWeightAndOfItsGradient) {
  hidesNothing();
  MemoryUse untiled = memoryOf(model, {plan}, setting);
  EXPECT_EQ(untiled.workspace.value, 256 + 128 + 96);
  setting.tiles = 4;
  MemoryUse tiled = memoryOf(model, {plan}, setting);
  EXPECT_EQ(tiled.workspace.value, 64 + 32 + 96);
  EXPECT_EQ(tiled.parameters, untiled.parameters);
  EXPECT_EQ(tiled.gradients, untiled.gradients);
  EXPECT_EQ(tiled.optimizer, untiled.optimizer);
  EXPECT_EQ(tiled.activations, untiled.activations);
}

// If 16 rows are divided into three tiles, the largest tile has six rows.
TEST_F(Tiling, HoldsTheLargestTile) {
  hidesNothing();
  setting.tiles = 3;
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value,
            6 * 16 + 6 * 8 + 96);
  Layout rows = Layout::replicated(2);
  rows.dims[0] = {0};
  EXPECT_EQ(largestTileOf({16, 8}, Layout::replicated(2), setting.mesh, 3),
            6 / 16.);
  EXPECT_EQ(largestTileOf({16, 8}, rows, setting.mesh, 3), 3 / 8.);
  EXPECT_EQ(largestTileOf({16, 8}, rows, setting.mesh, 16), 1 / 8.);
}

// With overlap, two tiles are held: the next weight tile is gathered while one
// is in use, and the next gradient tile is computed while one is reduced.
TEST_F(Tiling, HoldsTwoTilesToHideTheirMessages) {
  Software software = defaultSoftware();
  setting.software = &software;
  setting.tiles = 4;
  auto workspace = [&](bool gather, bool reduce) {
    software.overlap.gather = gather;
    software.overlap.reduce = reduce;
    return memoryOf(model, {plan}, setting).workspace.value;
  };
  EXPECT_EQ(workspace(false, false), 64 + 32 + 96);
  EXPECT_EQ(workspace(true, false), 2 * 64 + 32 + 96);
  EXPECT_EQ(workspace(false, true), 2 * 64 + 32 + 96);
}

// If compiled plans gather ahead, the next block's weights, 256 B, are gathered
// while one block is in use. A block's gradients are reduced after the block.
TEST_F(Tiling, BlocksArePrefetched) {
  Software software = defaultSoftware();
  setting.software = &software;
  software.overlap.gather = software.overlap.reduce = true;
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 256 + 128 + 96);
  plan.count = 4;
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 256 + 128 + 96);
  setting.gathersAhead = true;
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value,
            2 * 256 + 32 + 96);
  EXPECT_EQ(memoryOf(model, {plan, plan}, setting).workspace.value,
            2 * 256 + 32 + 96);
  plan.count = 1;
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace.value, 256 + 128 + 96);
  EXPECT_EQ(memoryOf(model, {plan, plan}, setting).workspace.value,
            2 * 256 + 32 + 96);
}

// All repeats that read the same input hold it once in each layout.
TEST_F(Tiling, InputsAreHeldOncePerLayout) {
  hidesNothing();
  SegmentPlan again = plan;
  double once = memoryOf(model, {plan}, setting).workspace.value;
  EXPECT_EQ(memoryOf(model, {plan, again}, setting).workspace.value, once);
  again.strategies = {{{kReplicated, kReplicated}}, {{kB, kReplicated}}};
  EXPECT_EQ(memoryOf(model, {plan, again}, setting).workspace.value,
            once + 4 * 16 * 2);
}

// One message over the tensor axis gathers the weight, and one reduces the
// gradient, for all tiles of a rank: both are held in full.
TEST_F(Tiling, AMessageOverTheTensorAxisIsNotTiled) {
  hidesNothing();
  setting.mesh = meshOf(1, 2);
  for (Layout *layout : {&plan.conversions[0].from, &plan.conversions[1].from,
                         &plan.conversions[1].to, &*plan.made[kW],
                         &*plan.made[kY], &*plan.made[kDw]})
    *layout = withPlacement(Layout::replicated(2), 1, placementOf(*layout, 0));
  plan.strategies = {{{kReplicated, kB}}, {{kReplicated, kB}}};
  plan.parameters[0]->stored = *plan.made[kW];
  MemoryUse untiled = memoryOf(model, {plan}, setting);
  EXPECT_EQ(untiled.workspace.value, 256 + 128 + 96);
  setting.tiles = 4;
  EXPECT_EQ(memoryOf(model, {plan}, setting).workspace, untiled.workspace);
}

// Tiles do not wait for a bucket: every tile has its own message.
TEST_F(Tiling, TilesDoNotFillBuckets) {
  Software software = defaultSoftware();
  setting.software = &software;
  software.parameters.bucket = Bytes{1e6};
  machine.levels[0].latency = Seconds{4 * kNano};
  double together = times().gatherForward.value;
  setting.tiles = 4;
  double alone = times().gatherForward.value;
  EXPECT_LT(together, 129 * kNano);
  EXPECT_DOUBLE_EQ(alone, 4 * std::pow(2 + std::sqrt(32.0), 2) * kNano);
  software.parameters.flatRing = BytesPerSec{2e9};
  EXPECT_DOUBLE_EQ(times().gatherForward.value, alone);
  setting.tiles = 1;
  EXPECT_DOUBLE_EQ(times().gatherForward.value, 128 * kNano);
}

// Each weight tile is gathered, and each gradient tile reduced, in a message of
// its own: the same bytes in four times as many messages.
TEST_F(Tiling, SendsTileByTile) {
  machine.levels[0].latency = Seconds{4 * kNano};
  auto inMessages = [](double count, double bytes) {
    return count * std::pow(std::sqrt(4.0) + std::sqrt(bytes), 2) * kNano;
  };
  EXPECT_DOUBLE_EQ(times().gatherForward.value, inMessages(1, 128));
  EXPECT_DOUBLE_EQ(times().reduce.value, inMessages(1, 128));
  setting.tiles = 4;
  EXPECT_DOUBLE_EQ(times().gatherForward.value, inMessages(4, 32));
  EXPECT_DOUBLE_EQ(times().reduce.value, inMessages(4, 32));
  int found = 0;
  for (const LedgerEntry &entry : ledgerOf(model, {plan}, setting)) {
    EXPECT_EQ(entry.perMicroBatch, 4);
    EXPECT_EQ(entry.bytes.value,
              entry.kind == StepKind::allGather ? 32.0 : 64.0);
    EXPECT_DOUBLE_EQ(entry.time.value, inMessages(1, 32));
    ++found;
  }
  EXPECT_EQ(found, 2);
}

// Forward has 512 flops and 352 B. Its four tiles of 4 rows move 544 B, because
// three of them read and write the sum of 32 B again. Backward tiles the
// gradient's rows, and three tiles read dy, 32 B, again: 448 B, which take less
// than its 512 flops. A launch takes 10 ns.
TEST_F(Tiling, PaysForEveryTile) {
  EXPECT_DOUBLE_EQ(times().forward.compute.value, (512 + 10) * kNano);
  EXPECT_DOUBLE_EQ(times().backward.compute.value, (512 + 10) * kNano);
  setting.tiles = 4;
  EXPECT_DOUBLE_EQ(times().forward.compute.value, (544 + 40) * kNano);
  EXPECT_DOUBLE_EQ(times().backward.compute.value, (512 + 40) * kNano);
}

// Compute units are partly idle if weight tiles are smaller than the kernel's
// tiles.
TEST_F(Tiling, SmallerProductsAreLessEfficient) {
  machine.device.tiles = {{16, 8, 1.0}};
  machine.device.bandwidth = BytesPerSec{1e15};
  double untiled = times().backward.compute.value;
  setting.tiles = 4;
  // The full gradient fills one kernel tile, and a weight tile a quarter of
  // one.
  EXPECT_DOUBLE_EQ(times().backward.compute.value, 4 * untiled);
}

// The largest weight has the requested number of tiles, and other weights have
// the fewest tiles that are not larger than its tiles. A weight that no product
// reads has one tile, and no weight has more tiles than its longest dimension.
TEST_F(Tiling, CutsOtherWeightsToTilesNoLarger) {
  auto add = [&](std::vector<std::int64_t> shape, OpClass opClass) {
    Parameter parameter;
    parameter.shape = std::move(shape);
    parameter.elementBytes = 2;
    Tensor tensor;
    tensor.kind = TensorKind::parameter;
    tensor.parameter = static_cast<int>(model.parameters.size());
    Op op;
    op.opClass = opClass;
    op.operands = {{static_cast<int>(model.segments[0].tensors.size()), {}}};
    model.parameters.push_back(parameter);
    model.segments[0].tensors.push_back(tensor);
    model.segments[0].ops.push_back(op);
  };
  add({16, 32}, OpClass::gemm);
  add({16, 33}, OpClass::memory);
  add({8, 3}, OpClass::gemm);
  EXPECT_EQ(tilesOfParameters(model, setting), (std::vector{1, 1, 1, 1}));
  setting.tiles = 8;
  EXPECT_EQ(tilesOfParameters(model, setting), (std::vector{2, 8, 1, 1}));
  setting.tiles = 64;
  EXPECT_EQ(tilesOfParameters(model, setting), (std::vector{16, 32, 1, 3}));
}

TEST_F(Tiling, AppliesToZeroStageThreeAlone) {
  Case drawn = drawCase(0);
  drawn.options.tiles = {{1, 4}};
  std::vector<Rejection> rejections;
  int tiled = 0, untiled = 0;
  for (const Parallelism &config :
       enumerateSpace(drawn.model, drawn.machine, drawn.options, rejections)) {
    EXPECT_TRUE(config.tiles == 1 || config.zeroStage == 3);
    tiled += config.tiles == 4;
    untiled += config.zeroStage == 3 && config.tiles == 1;
  }
  EXPECT_GT(tiled, 0);
  EXPECT_EQ(tiled, untiled);
  drawn.options.tiles = {{4}};
  EXPECT_EQ(
      enumerateSpace(drawn.model, drawn.machine, drawn.options, rejections)
          .size(),
      static_cast<std::size_t>(tiled));
}

} // namespace
} // namespace mtplan::planner
