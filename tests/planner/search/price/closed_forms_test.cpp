//===- closed_forms_test.cpp - Numbers worked out on paper ----------------===//
//
// Expected values are numbers of the papers. docs/closed-forms.md lists them by
// their labels, such as G4.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "planner/cost/kernel_cost.h"
#include "planner/machine/software_json.h"
#include "planner/search/price/memory_use.h"
#include "planner/search/price/price.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/space/pipeline_parts.h"
#include "tests/planner/cost/op_case.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

// L1 to L3: a product has 2 n^3 flops and 6 n^2 bytes for n = 3072. If p ranks
// share the columns, a rank has 1/p of the flops and over 1/p of the bytes.
TEST(GemmIntensity, FallsAsColumnsAreShared) {
  constexpr double kCube = 2.0 * 3072 * 3072 * 3072;
  constexpr double kSquares = 6.0 * 3072 * 3072;
  OpCase unsharded = product(3072, 3072, 3072);
  LocalWork serial(unsharded.op, unsharded.tensors);
  EXPECT_EQ(serial.flops(), kCube);
  EXPECT_EQ(serial.traffic(), kSquares);
  struct Row {
    int p;
    double intensity, flops, traffic, share;
  };
  for (const Row &row :
       {Row{1, 1024.0, 1.0, 1.0, 1.0}, Row{2, 768.0, 0.5, 2.0 / 3, 0.75},
        Row{4, 512.0, 0.25, 0.5, 0.5},
        Row{8, 307.2, 0.125, 0.41666666666666667, 0.3}}) {
    Mesh mesh{{{"tp", row.p}}};
    Strategy columns{{kN}};
    LocalWork local(unsharded.op, unsharded.tensors, columns, mesh);
    EXPECT_DOUBLE_EQ(local.flops() / local.traffic(), row.intensity) << row.p;
    EXPECT_DOUBLE_EQ(local.flops() / kCube, row.flops) << row.p;
    EXPECT_DOUBLE_EQ(local.traffic() / kSquares, row.traffic) << row.p;
    EXPECT_DOUBLE_EQ(local.flops() / local.traffic() / 1024, row.share)
        << row.p;
  }
}

// I4: FlexFlow has a figure of a layer with a 10 x 512 output. Its sample,
// attribute and parameter axes are strategies of one operator. (Its fourth,
// operators on different devices, exists only as pipeline stages.)
TEST(Soap, ShapesOfTheThreeSplits) {
  OpCase layer = product(10, 512, 512);
  layer.op.linearGroups.clear(); // no strategies with partial operands
  auto pieces = [&](int ranks, Split split, int use) {
    Mesh mesh{{{"tp", ranks}}};
    std::vector<Strategy> found = strategiesOf(layer.op, mesh, {{{split}}});
    EXPECT_EQ(found.size(), 2U); // replicated, and the split itself
    Layout layout = use < 2 ? operandLayout(layer.op, found.back(), use)
                            : resultLayout(layer.op, found.back(), 0);
    return localShape(layer.tensors[static_cast<std::size_t>(use)].shape,
                      layout, mesh);
  };
  using Shape = std::vector<std::int64_t>;
  // The sample axis gives five ranks 2 x 512 and the full weight.
  EXPECT_EQ(pieces(5, Split::batch, 2), (Shape{2, 512}));
  EXPECT_EQ(pieces(5, Split::batch, 1), (Shape{512, 512}));
  // The attribute axis gives two ranks 10 x 256.
  EXPECT_EQ(pieces(2, Split::column, 2), (Shape{10, 256}));
  // The parameter axis is the same split of the weight; the input is
  // replicated.
  EXPECT_EQ(pieces(2, Split::column, 1), (Shape{512, 256}));
  EXPECT_EQ(pieces(2, Split::column, 0), (Shape{10, 512}));
  // A split of the weight's rows splits the columns of the input.
  EXPECT_EQ(pieces(2, Split::row, 1), (Shape{256, 512}));
  EXPECT_EQ(pieces(2, Split::row, 0), (Shape{10, 256}));
  // Two axes give 5 x 2 ranks 2 x 256.
  Mesh both{{{"dp", 5}, {"tp", 2}}};
  EXPECT_EQ(localShape({10, 512}, resultLayout(layer.op, {{kM, kN}}, 0), both),
            (Shape{2, 256}));
}

// Returns the bytes per weight that a rank holds under ZeRO `stage`.
double bytesPerWeight(int stage, int ranks, const Software &software,
                      Precision precision = Precision::bf16) {
  ModelGraph model;
  Parameter weight;
  weight.name = "w";
  weight.shape = {4096, 4096};
  weight.splits = {Split::row, Split::column};
  weight.elementBytes = bytesOf(precision);
  model.parameters = {weight};
  Machine machine = roundMachine();
  Parallelism config;
  config.dp = config.zeroRanks = ranks;
  config.globalBatch = ranks;
  config.zeroStage = stage;
  SearchOptions options;
  options.precision = precision;
  options.software = &software;
  Setting setting = settingOf(options, machine, config);
  ParameterState state = parameterStates(model, 0, setting)[0];
  return parameterCost(weight, state, setting).memory / (4096.0 * 4096.0);
}

// G4: in the paper's table, Adam in mixed precision has 2 + 2 + 12 bytes per
// weight.
TEST(ZeroBytes, EqualTheTable) {
  struct Row {
    int ranks;
    double one, two, three;
  };
  for (const Row &row :
       {Row{2, 10, 9, 8}, Row{4, 7, 5.5, 4}, Row{8, 5.5, 3.75, 2},
        Row{16, 4.75, 2.875, 1}, Row{64, 4.1875, 2.21875, 0.25}}) {
    EXPECT_EQ(bytesPerWeight(0, row.ranks, defaultSoftware()), 16);
    EXPECT_EQ(bytesPerWeight(1, row.ranks, defaultSoftware()), row.one);
    EXPECT_EQ(bytesPerWeight(2, row.ranks, defaultSoftware()), row.two);
    EXPECT_EQ(bytesPerWeight(3, row.ranks, defaultSoftware()), row.three);
  }
}

// Y: with d replicas, Megatron's distributed optimizer reduces 18 bytes per
// weight (16-bit weights, fp32 gradients) to 6 + 12 / d, and 16 bytes per
// weight (all in fp32) to 8 + 8 / d.
TEST(ZeroBytes, EqualMegatronsDistributedOptimizer) {
  Software wide = defaultSoftware();
  wide.parameters.gradient = 4;
  EXPECT_EQ(bytesPerWeight(0, 8, wide), 18);
  EXPECT_EQ(bytesPerWeight(1, 8, wide), 7.5);
  EXPECT_EQ(bytesPerWeight(1, 64, wide), 6.1875);
  EXPECT_EQ(bytesPerWeight(0, 8, wide, Precision::fp32), 16);
  EXPECT_EQ(bytesPerWeight(1, 8, wide, Precision::fp32), 9);
  EXPECT_EQ(bytesPerWeight(1, 64, wide, Precision::fp32), 8.125);
}

// G9: 10 billion weights are 20 GB in 16 bits and 160 GB with their state.
// E16: 8,317,040,640 weights in fp32 are 33.27 GB, or 30.98 GiB, for each of
// weight, gradient and two moments: 133.07 GB in all.
TEST(StateOfAModel, IsGivenInGigabytesAndGibibytes) {
  auto use = [](std::int64_t weights, Precision precision) {
    Machine machine = roundMachine();
    Setting setting;
    setting.mesh = meshOf(1, 1);
    setting.machine = &machine;
    setting.precision = precision;
    ModelGraph model;
    model.parameters = {{"all", {weights}, {Split::row}}};
    model.parameters[0].elementBytes = bytesOf(precision);
    model.segments.emplace_back();
    SegmentPlan plan;
    plan.parameters = {ParameterState{Layout::replicated(1), {}, {}, false}};
    return memoryOf(model, {plan}, setting);
  };
  MemoryUse ten = use(10'000'000'000, Precision::bf16);
  EXPECT_EQ(ten.parameters.value, 20e9);
  EXPECT_EQ(ten.total().value, 160e9);
  MemoryUse single = use(8'317'040'640, Precision::fp32);
  EXPECT_NEAR(single.parameters.value / 1e9, 33.27, 0.005);
  EXPECT_NEAR(single.parameters.value / 1024 / 1024 / 1024, 30.98, 0.005);
  EXPECT_EQ(single.gradients.value, single.parameters.value);
  EXPECT_EQ(single.optimizer.value, 2 * single.parameters.value);
  EXPECT_NEAR(single.total().value / 1e9, 133.07, 0.005);
}

// G10: pipelines use ZeRO up to stage 1, unless a higher stage is requested.
TEST(ZeroUnderAPipeline, StopsAtOneUnlessForced) {
  ModelGraph model = RandomModel(1).model(3, 1, 1);
  model.segments[1].repeat = 4;
  SearchOptions options;
  options.devices = 8;
  options.globalBatch = 8;
  options.pp = options.zeroStage = {};
  Machine machine = roundMachine();
  std::vector<Rejection> rejections;
  int stages[4] = {0, 0, 0, 0};
  for (const Parallelism &config :
       enumerateSpace(model, machine, options, rejections))
    if (config.pp > 1)
      ++stages[config.zeroStage];
  EXPECT_GT(stages[0], 0);
  EXPECT_GT(stages[1], 0);
  EXPECT_EQ(stages[2] + stages[3], 0);
  options.zeroStage = {{2}};
  int forced = 0;
  for (const Parallelism &config :
       enumerateSpace(model, machine, options, rejections))
    forced += config.pp > 1 && config.zeroStage == 2;
  EXPECT_GT(forced, 0);
}

// H10: 4 stages have all of 30 layers. H1: 8 layers on 2 stages are 4 and 4.
TEST(PipelineSplit, KeepsEveryLayerOfThirtyAndOfEight) {
  EXPECT_EQ(evenLayers(8, 2), (std::vector{4, 4}));
  std::vector<int> layers = evenLayers(30, 4);
  EXPECT_EQ(layers[0] + layers[1] + layers[2] + layers[3], 30);
}

} // namespace
} // namespace mtplan::planner
