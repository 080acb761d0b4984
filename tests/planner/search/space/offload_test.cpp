//===- offload_test.cpp - The optimizer in the host's memory --------------===//

#include <gtest/gtest.h>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/search.h"
#include "planner/search/solve_candidate.h"
#include "planner/search/space/enumerate.h"
#include "tests/planner/search/space/space_case.h"

namespace mtplan::planner {
namespace {

constexpr std::int64_t kSide = 1024;
constexpr double kWeights = double(kSide) * kSide;

// Describes a model with one weight, in the first of the weight's possible
// states.
struct OneWeight {
  ModelGraph model;
  Machine machine = roundMachine();
  Setting setting;
  SegmentPlan plan;

  OneWeight(int sharers, int zeroStage, Offload offload, Precision precision) {
    Parameter weight;
    weight.name = "w";
    weight.shape = {kSide, kSide};
    weight.splits = {Split::row, Split::column};
    weight.elementBytes = bytesOf(precision);
    model.parameters = {weight};
    model.segments.emplace_back();
    // Four devices share the host's 100 GB/s, half of which updates reach.
    machine.devicesPerNode = 4;
    machine.host = Host{Bytes{64e9}, BytesPerSec{100e9}, 0.5, BytesPerSec{10e9},
                        Seconds{10e-6}};
    Parallelism config;
    config.dp = config.zeroRanks = sharers;
    config.globalBatch = sharers;
    config.zeroStage = zeroStage;
    config.offload = offload;
    SearchOptions options;
    options.devices = sharers;
    options.precision = precision;
    setting = settingOf(options, machine, config);
    plan.parameters = {parameterStates(model, 0, setting)[0]};
  }

  MemoryUse memory() const { return memoryOf(model, {plan}, setting); }
  HostTimes times() const {
    return hostTimes(model.parameters[0], *plan.parameters[0], setting);
  }
};

// G5: moments and master weights leave the device, 12 bytes per weight that a
// rank owns, or 8 in fp32, where the device's weights are the master weights.
// The host holds this state, a buffer of gradients and a buffer of updated
// weights; in fp32, the last is the host's copy of the weights.
TEST(Offload, MovesTheStateToTheHost) {
  for (int ranks : {1, 2, 8, 64})
    for (int stage : {1, 2, 3})
      for (auto [precision, moved, kept] :
           {std::tuple{Precision::bf16, 12.0, 16.0},
            std::tuple{Precision::fp32, 8.0, 16.0}}) {
        MemoryUse none =
            OneWeight(ranks, stage, Offload::none, precision).memory();
        MemoryUse off =
            OneWeight(ranks, stage, Offload::optimizer, precision).memory();
        EXPECT_EQ((none.total() - off.total()).value, moved * kWeights / ranks);
        EXPECT_EQ(off.host.value, kept * kWeights / ranks);
        EXPECT_EQ(off.parameters, none.parameters);
        EXPECT_EQ(off.gradients, none.gradients);
        EXPECT_EQ(off.optimizer.value, 0.0);
        EXPECT_EQ(none.host.value, 0.0);
        EXPECT_EQ(off.hostLimit.value, 64e9 / std::min(ranks, 4));
      }
}

// G5: once per step, a rank sends 2 bytes of gradient down and gets 2 bytes of
// weight up for each weight that it owns. 28 bytes per weight pass through the
// host's memory, at the rank's share of its bandwidth.
TEST(Offload, MovesWhatARankOwnsOnceAStep) {
  auto near = [](Seconds time, double expected) {
    EXPECT_NEAR(time.value, expected, 1e-12);
  };
  HostTimes alone =
      OneWeight(1, 0, Offload::optimizer, Precision::bf16).times();
  near(alone.down, 10e-6 + 2 * kWeights / 10e9);
  near(alone.update, 28 * kWeights / 50e9);
  near(alone.up, 10e-6 + 2 * kWeights / 10e9);
  HostTimes eighth =
      OneWeight(8, 1, Offload::optimizer, Precision::bf16).times();
  near(eighth.down, 10e-6 + 0.25 * kWeights / 10e9);
  near(eighth.update, 3.5 * kWeights / 12.5e9);
  near(eighth.up, 10e-6 + 0.25 * kWeights / 10e9);
  HostTimes full = OneWeight(8, 1, Offload::optimizer, Precision::fp32).times();
  near(full.down, 10e-6 + 0.5 * kWeights / 10e9);
  near(full.up, 10e-6 + 0.5 * kWeights / 10e9);
  EXPECT_EQ(
      OneWeight(8, 1, Offload::none, Precision::bf16).times().total().value,
      0.0);
}

// On one device, offload changes only the update, which the host runs.
TEST(Offload, ReplacesTheDevicesUpdate) {
  for (unsigned seed : {3U, 4U, 8U}) {
    Case drawn = drawCase(seed);
    drawn.options.devices = 1;
    // Excludes the gradient norm, which stays on the device (explain_test.cpp).
    Software software = defaultSoftware();
    software.parameters.normReads = 0;
    drawn.options.software = &software;
    for (bool beside : {false, true}) {
      drawn.options.overlaps.down = beside;
      drawn.options.overlaps.hostUpdate = beside;
      drawn.options.overlaps.up = beside;
      auto solved = [&](Offload offload) {
        Parallelism config;
        config.globalBatch = 4;
        config.layers = {layersOf(drawn.model)};
        config.offload = offload;
        StageCache cache;
        Rejection rejection;
        return *solveCandidate(withBatch(drawn.model, 1), drawn.options,
                               drawn.machine, config, {}, cache, rejection);
      };
      PlannedCandidate none = solved(Offload::none);
      PlannedCandidate off = solved(Offload::optimizer);
      EXPECT_EQ(none.time.host.value, 0.0);
      EXPECT_GT(none.time.update.value, 0.0);
      EXPECT_EQ(off.time.update.value, 0.0);
      EXPECT_NEAR(off.time.step.value,
                  (none.time.step - none.time.update + off.time.host).value,
                  1e-9 * off.time.step.value);
      // Per weight, 2 bytes are copied down and 2 up at 1 GB/s, and the update
      // moves 28 bytes at 0.5 GB/s. Each repeat of a parameter adds the latency
      // of two transfers.
      double weights = none.memory.optimizer.value / 12;
      double copies = 0;
      for (const Parameter &parameter : drawn.model.parameters)
        copies += 2.0 * (parameter.shared ? 1 : parameter.copies);
      EXPECT_NEAR(off.time.host.value, weights * 60e-9 + copies * 1e-7, 1e-12);
    }
  }
}

// The times of the host's work add up in a stage of one chunk and overlap in a
// stage of several, so a cached solution of one case must not be used for the
// other.
TEST(Offload, CachedSolutionsChangeNothing) {
  int compared = 0;
  for (unsigned seed : {3U, 4U, 8U, 9U}) {
    Case drawn = drawCase(seed);
    drawn.options.offload = {{Offload::optimizer}};
    drawn.options.overlaps.down = drawn.options.overlaps.up = true;
    drawn.options.overlaps.hostUpdate = true;
    StageCache shared;
    for (const Parallelism &config :
         wholeSpace(drawn.model, drawn.machine, drawn.options)) {
      ModelGraph graph = withBatch(drawn.model, config.microBatch * config.dp);
      auto solved = [&](StageCache &cache) {
        Rejection rejection;
        return *solveCandidate(graph, drawn.options, drawn.machine, config, {},
                               cache, rejection);
      };
      StageCache own;
      PlannedCandidate alone = solved(own), after = solved(shared);
      EXPECT_NEAR(alone.time.step.value, after.time.step.value,
                  1e-9 * alone.time.step.value);
      EXPECT_NEAR(alone.lowerBound.value, after.lowerBound.value,
                  1e-9 * alone.lowerBound.value);
      compared += config.virtualStages > 1;
    }
  }
  EXPECT_GT(compared, 20);
}

// Configurations that exceed the host's memory are rejected unsolved. The
// rejections contain the bytes that they would need.
TEST(Offload, IsLimitedByTheHostsMemory) {
  Case drawn = drawCase(3);
  drawn.options.devices = 1;
  drawn.options.offload = {{Offload::optimizer}};
  drawn.options.pp = drawn.options.zeroStage = {{1}};
  SearchResult free = search(drawn.model, drawn.machine, drawn.options);
  ASSERT_FALSE(free.plans.empty());
  Bytes needed = free.plans[0].memory.host;
  drawn.machine.host->memory = needed;
  EXPECT_FALSE(search(drawn.model, drawn.machine, drawn.options).plans.empty());
  drawn.machine.host->memory = 0.99 * needed;
  SearchResult none = search(drawn.model, drawn.machine, drawn.options);
  EXPECT_TRUE(none.plans.empty());
  ASSERT_FALSE(none.rejections.empty());
  for (const Rejection &rejection : none.rejections) {
    EXPECT_EQ(rejection.reason, Rejection::Reason::host);
    EXPECT_EQ(rejection.needed, needed);
  }
}

TEST(Offload, IsNotTriedUnlessAskedFor) {
  Case drawn = drawCase(0);
  auto count = [&](Choices<Offload> choices) {
    drawn.options.offload = std::move(choices);
    std::vector<Rejection> rejections;
    return enumerateSpace(drawn.model, drawn.machine, drawn.options, rejections)
        .size();
  };
  std::size_t none = count(SearchOptions().offload);
  EXPECT_GT(none, 0U);
  EXPECT_EQ(count({{Offload::optimizer}}), none);
  EXPECT_EQ(count({}), 2 * none);
  for (const Parallelism &config : [&] {
         std::vector<Rejection> rejections;
         drawn.options.offload = SearchOptions().offload;
         return enumerateSpace(drawn.model, drawn.machine, drawn.options,
                               rejections);
       }())
    EXPECT_EQ(config.offload, Offload::none);
}

} // namespace
} // namespace mtplan::planner
