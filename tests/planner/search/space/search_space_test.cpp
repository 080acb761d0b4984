//===- search_space_test.cpp - The whole space, with and without bounds ---===//

#include <numeric>

#include <gtest/gtest.h>

#include "planner/search/bound/bounds.h"
#include "planner/search/bound/relaxation.h"
#include "planner/search/search.h"
#include "planner/search/solve_candidate.h"
#include "planner/search/space/enumerate.h"
#include "tests/planner/search/space/space_case.h"

namespace mtplan::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Every layer is in exactly one part, in order; impossible counts are rejected.
TEST(PipelineParts, ContainEveryLayerOnce) {
  std::mt19937_64 random(1);
  ModelGraph model;
  model.segments.resize(3);
  for (int round = 0; round < 2000; ++round) {
    int layers = 1 + static_cast<int>(random() % 200);
    int parts = 1 + static_cast<int>(random() % 64);
    model.segments[1].repeat = layers;
    if (layers == 1) // all three segments count as layers
      layers = 3;
    ASSERT_EQ(layersOf(model), layers);
    std::vector<int> counts = evenLayers(layers, parts);
    if (parts > layers) {
      EXPECT_THROW(pipelineParts(model, counts), std::invalid_argument);
      continue;
    }
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), layers);
    auto [least, most] = std::ranges::minmax(counts);
    EXPECT_LE(most - least, 1);
    EXPECT_EQ(counts.front(), least);
    if (layers % parts + 2 <= parts) {
      EXPECT_EQ(counts.back(), least);
    }
    std::vector<PipelinePart> held = pipelineParts(model, counts);
    ASSERT_EQ(held.size(), counts.size());
    std::vector<int> next(3, 0);
    int segment = 0;
    for (const PipelinePart &part : held)
      for (const RepeatRange &range : part) {
        EXPECT_GE(range.segment, segment);
        segment = range.segment;
        EXPECT_EQ(range.first, next[static_cast<std::size_t>(segment)]);
        next[static_cast<std::size_t>(segment)] += range.count;
      }
    for (std::size_t s = 0; s < 3; ++s)
      EXPECT_EQ(next[s], model.segments[s].repeat);
    --counts.front();
    EXPECT_THROW(pipelineParts(model, counts), std::invalid_argument);
  }
}

// The head of a model may have a stage of its own.
TEST(PipelineParts, TheLastMayHaveTheHeadAlone) {
  RandomModel random(3);
  ModelGraph model = random.model(3, 1, 1);
  model.segments[1].repeat = 5;
  const std::vector<PipelinePart> held = pipelineParts(model, {3, 2, 0});
  ASSERT_EQ(held.size(), 3U);
  EXPECT_EQ(held[0], (PipelinePart{{0, 0, 1}, {1, 0, 3}}));
  EXPECT_EQ(held[1], (PipelinePart{{1, 3, 2}}));
  EXPECT_EQ(held[2], (PipelinePart{{2, 0, 1}}));
  EXPECT_THROW(pipelineParts(model, {3, 0, 2}), std::invalid_argument);
  EXPECT_THROW(pipelineParts(model, {5, 0, 0}), std::invalid_argument);
  EXPECT_THROW(pipelineParts(model, {0}), std::invalid_argument);
}

// If the layers do not divide evenly, the first stage and then the last, which
// also have the embedding and the head, get fewer layers.
TEST(PipelineParts, EndsGetFewer) {
  EXPECT_EQ(evenLayers(30, 4), (std::vector{7, 8, 8, 7}));
  EXPECT_EQ(evenLayers(31, 4), (std::vector{7, 8, 8, 8}));
  EXPECT_EQ(evenLayers(32, 4), (std::vector{8, 8, 8, 8}));
  EXPECT_EQ(evenLayers(5, 2), (std::vector{2, 3}));
}

// fillsChunks() returns whether evenLayers() gives all middle chunks equal
// numbers of layers, and the first and the last chunk at most one less.
TEST(PipelineParts, ChunksAreEqualButForTheEnds) {
  for (int layers = 1; layers <= 60; ++layers)
    for (int chunks = 1; chunks <= 64; ++chunks) {
      bool alike = chunks <= layers;
      if (alike) {
        std::vector<int> counts = evenLayers(layers, chunks);
        int most = *std::ranges::max_element(counts);
        for (std::size_t i = 0; i < counts.size(); ++i) {
          bool isEnd = i == 0 || i + 1 == counts.size();
          alike = alike && counts[i] >= (isEnd ? most - 1 : most);
        }
      }
      EXPECT_EQ(fillsChunks(layers, chunks), alike)
          << layers << " layers in " << chunks << " chunks";
    }
}

// Counts cases of each kind. compareSpaces() checks that the search finds the
// best of all configurations, each solved on its own without pruning, at
// several memory limits, and that every bound holds for every configuration.
struct Found {
  int fitting = 0, pipelines = 0, split = 0, reached = 0;
  int offloaded = 0, hostsFull = 0, tiled = 0;
  int fused = 0, experts = 0, hybrid = 0, counted = 0, uneven = 0;
};
void compareSpaces(unsigned seeds, bool everything, Found &counts) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    Case drawn = drawCase(seed);
    if (everything)
      openEverything(drawn, seed % 4 == 3 ? 128.0 : 16.0);
    // Every second search fixes tp, pp and cp at 1, so that only the groups of
    // experts and of ranks that share state are chosen.
    if (everything && seed % 2 == 1) {
      drawn.options.devices = drawn.options.globalBatch = 8;
      drawn.options.tp = 1;
      drawn.options.pp = drawn.options.cp = {{1}};
    }
    double used = 0.0, usedOfHost = 0.0;
    std::vector<double> shares{0.0, 0.9, 0.7, 0.5, 0.35};
    if (everything)
      shares = {0.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.35};
    for (double share : shares) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " at " << share);
      if (share > 0.0)
        drawn.machine.device.memory = Bytes{share * used};
      if (share == 0.35 && drawn.machine.host)
        drawn.machine.host->memory = Bytes{0.4 * usedOfHost};
      Bounds bounds(drawn.model, drawn.machine, drawn.options);
      Relaxation relaxation(drawn.model, drawn.machine, drawn.options);
      double best = kNever, open = kNever;
      StageCache cache;
      std::vector<Parallelism> space =
          wholeSpace(drawn.model, drawn.machine, drawn.options);
      for (const Parallelism &config : space) {
        EXPECT_EQ(config.devices(), drawn.options.devices);
        Rejection rejection;
        std::optional<PlannedCandidate> one = solveCandidate(
            withBatch(drawn.model, config.microBatch * config.dp),
            drawn.options, drawn.machine, config, {}, cache, rejection);
        ASSERT_TRUE(one);
        EXPECT_LE(bounds.memory(config).value,
                  one->memory.total().value * (1 + 1e-9));
        EXPECT_LE(bounds.hostMemory(config).value,
                  one->memory.host.value * (1 + 1e-9));
        EXPECT_EQ(one->memory.host.value > 0, config.offload != Offload::none);
        usedOfHost = std::max(usedOfHost, one->memory.host.value);
        counts.hostsFull += one->memory.host > one->memory.hostLimit;
        Seconds step = one->time.step;
        if (one->fits) {
          EXPECT_LE(one->lowerBound.value, step.value * (1 + 1e-9));
        }
        EXPECT_LE(pipelineBound(bounds.compute(config), config).value,
                  step.value * (1 + 1e-9));
        relaxation.prepare({config});
        EXPECT_LE(pipelineBound(relaxation.microBatchOf(config), config).value,
                  step.value * (1 + 1e-9));
        Relaxation::StepBound bound = relaxation.stepOf(config);
        EXPECT_LE(bound.quick.value, step.value * (1 + 1e-9));
        Seconds simulated = stepSecondsOf(bound.least.problem);
        EXPECT_LE(simulated.value, step.value * (1 + 1e-9));
        counts.reached += one->fits && simulated >= step * (1 - 1e-9);
        // The search may find another plan of this configuration that fits.
        if (!one->fits)
          open = std::min(open, rejection.bound.value);
        if (!one->fits)
          continue;
        best = std::min(best, step.value);
        open =
            std::min(open, one->optimal ? step.value : one->lowerBound.value);
      }
      SearchResult result = search(drawn.model, drawn.machine, drawn.options);
      EXPECT_EQ(result.candidates, std::ssize(space));
      // If the workspace decides whether plans fit, the search may find one
      // where solving each configuration on its own finds none.
      if (best == kNever)
        continue;
      ASSERT_FALSE(result.plans.empty());
      const PlannedCandidate &found = result.plans[0];
      EXPECT_LE(result.lowerBound.value, best * (1 + 1e-9));
      // The plan is as fast as the best of the configurations solved on their
      // own, unless segments are large and the search does not claim the
      // optimum.
      if (found.optimal || !drawn.fuses) {
        EXPECT_LE(found.time.step.value, best * (1 + 1e-9));
      }
      EXPECT_GE(found.time.step.value, open * (1 - 1e-9));
      if (share == 0.0)
        used = found.memory.total().value;
      ++counts.fitting;
      counts.fused += drawn.fuses;
      counts.pipelines += found.config.pp > 1;
      counts.split += found.config.zeroStage > 0;
      counts.offloaded += found.config.offload != Offload::none;
      counts.tiled += found.config.tiles > 1;
      counts.experts += found.config.ep > 1;
      counts.hybrid += found.config.zeroStage > 0 &&
                       found.config.zeroRanks < found.config.dp;
      counts.counted += found.config.recompute == Recompute::full &&
                        found.config.recomputeLayers > 0;
      counts.uneven +=
          found.config.pp > 1 &&
          found.config.layers !=
              evenLayers(layersOf(drawn.model),
                         static_cast<int>(found.config.layers.size()));
    }
  }
}

TEST(SearchSpace, SearchFindsTheBestOfAllConfigurations) {
  Found counts;
  compareSpaces(40, false, counts);
  // Cases of every kind occurred.
  EXPECT_GT(counts.fitting, 120);
  EXPECT_GT(counts.pipelines, 5);
  EXPECT_GT(counts.split, 20);
  EXPECT_GT(counts.offloaded, 10);
  EXPECT_GT(counts.hostsFull, 100);
  EXPECT_GT(counts.tiled, 0);
  EXPECT_GT(counts.fused, 20);
  // Bounds are also tight: many plans have a step equal to their bound.
  EXPECT_GT(counts.reached, 1000);
}

// The options that are off by default are expert parallelism, recomputation of
// some layers, uneven stages and hybrid sharding.
TEST(SearchSpace, SearchFindsTheBestOfEveryOption) {
  Found counts;
  compareSpaces(16, true, counts);
  EXPECT_GT(counts.fitting, 40);
  EXPECT_GT(counts.experts, 3);
  EXPECT_GT(counts.hybrid, 0);
  EXPECT_GT(counts.counted, 0);
  EXPECT_GT(counts.uneven, 0);
}

// Bytes per weight in mixed precision (Rajbhandari et al. 2020, table 1), where
// every dimension divides, are 16, 4 + 12 / n, 2 + 14 / n and 16 / n in stages
// 0 to 3.
TEST(Zero, BytesPerWeight) {
  ModelGraph model;
  Parameter weight;
  weight.name = "w";
  weight.shape = {4096, 4096};
  weight.splits = {Split::row, Split::column};
  model.parameters = {weight};
  Machine machine = roundMachine();
  for (int n : {2, 4, 8, 16, 64})
    for (int stage : {0, 1, 2, 3}) {
      Parallelism config;
      config.dp = n;
      config.globalBatch = n;
      config.zeroStage = stage;
      config.zeroRanks = n;
      Setting setting = settingOf({}, machine, config);
      ParameterState state = parameterStates(model, 0, setting)[0];
      double bytes =
          parameterCost(weight, state, setting).memory / (4096.0 * 4096.0);
      const double expected[] = {16.0, 4 + 12.0 / n, 2 + 14.0 / n, 16.0 / n};
      EXPECT_DOUBLE_EQ(bytes, expected[stage]) << "stage " << stage;
    }
}

// 4096 rows do not divide by 96, so they are sharded if padding is allowed and
// replicated if not.
TEST(Zero, PaddedShards) {
  ModelGraph model;
  Parameter weight;
  weight.name = "w";
  weight.shape = {4096, 4096};
  weight.splits = {Split::row, Split::column};
  model.parameters = {weight};
  Machine machine = roundMachine();
  Parallelism config;
  config.dp = config.zeroRanks = 96;
  config.globalBatch = 96;
  config.zeroStage = 3;
  auto bytes = [&](bool pads) {
    SearchOptions options;
    options.padsShards = pads;
    Setting setting = settingOf(options, machine, config);
    ParameterState state = parameterStates(model, 0, setting)[0];
    return parameterCost(weight, state, setting).memory / (4096.0 * 4096.0);
  };
  EXPECT_DOUBLE_EQ(bytes(false), 16.0);
  EXPECT_DOUBLE_EQ(bytes(true), 16.0 / 96);
  EXPECT_EQ(localShape({4096, 8}, {{{0}, {}}, {}}, meshOf(config)),
            (std::vector<std::int64_t>{43, 8}));
}

// Half of the replicas share one copy of the state: the mesh has an axis over
// the two copies, and one over the four ranks of a copy.
TEST(Zero, HybridSharding) {
  Parallelism config;
  config.dp = 8;
  config.zeroStage = 3;
  config.zeroRanks = 4;
  Mesh mesh = meshOf(config);
  ASSERT_EQ(mesh.axes.size(), 3U);
  EXPECT_EQ(mesh.axes[0].size, 2);
  EXPECT_EQ(mesh.axes[1].name, "zero");
  EXPECT_EQ(mesh.axes[1].size, 4);
  EXPECT_EQ(mesh.ranks(), 8);
}

// Replicas all-reduce gradients in stage 0. In stages 1 to 3, they
// reduce-scatter gradients and all-gather weights instead.
TEST(Zero, LedgerOfAStep) {
  Case drawn = drawCase(0);
  for (int stage : {0, 1, 2, 3}) {
    Parallelism config;
    config.dp = 2;
    config.globalBatch = 2;
    config.zeroStage = stage;
    config.zeroRanks = 2;
    drawn.options.devices = 2;
    StageCache cache;
    Rejection rejection;
    auto one = solveCandidate(withBatch(drawn.model, 2), drawn.options,
                              drawn.machine, config, {}, cache, rejection);
    ASSERT_TRUE(one);
    Setting setting = settingOf(drawn.options, drawn.machine, config);
    int scatters = 0, gathers = 0, reduces = 0;
    for (const LedgerEntry &entry :
         ledgerOf(drawn.model, one->plans(), setting)) {
      if (entry.bytes.value <= 8) // the loss
        continue;
      scatters += entry.kind == StepKind::reduceScatter;
      gathers += entry.kind == StepKind::allGather;
      reduces += entry.kind == StepKind::allReduce;
    }
    SCOPED_TRACE(stage);
    EXPECT_EQ(reduces > 0, stage == 0);
    EXPECT_EQ(scatters > 0, stage > 0);
    EXPECT_EQ(gathers > 0, stage > 0);
  }
}

} // namespace
} // namespace mtplan::planner
