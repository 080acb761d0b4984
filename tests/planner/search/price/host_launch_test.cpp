//===- host_launch_test.cpp - Steps of a slow host ------------------------===//

#include <gtest/gtest.h>

#include "planner/search/price/price.h"
#include "planner/search/search.h"
#include "tests/planner/search/every_plan_of.h"

namespace mtplan::planner {
namespace {

// Stages of one run each: two repeats of 10 ms forward and 20 ms backward.
class HostLaunches : public testing::Test {
protected:
  HostLaunches() {
    setting.machine = &machine;
    setting.software = &software;
    setting.mesh = meshOf(1, 1);
    times.forward.compute = Seconds{0.010};
    times.backward.compute = Seconds{0.020};
    config.globalBatch = 4; // micro-batches of one sample
  }

  StepProblem problem() {
    std::vector<StepPart> parts(static_cast<std::size_t>(config.pp));
    for (StepPart &part : parts)
      part.runs.push_back({times, 2});
    return stepProblemOf(parts, Bytes{}, setting, config, {});
  }

  Machine machine = roundMachine();
  Software software;
  Setting setting;
  Parallelism config;
  PhaseTimes times;
};

TEST_F(HostLaunches, AFastHostChangesNothing) {
  const Seconds before = stepSecondsOf(problem());
  EXPECT_NEAR(before.value, 4 * 2 * 0.030, 1e-12);
  times.launchForward = Seconds{0.010};
  times.launchBackward = Seconds{0.020};
  EXPECT_EQ(stepSecondsOf(problem()), before);
  EXPECT_EQ(problem().stages[0].chunks[0].launch, Seconds{});
}

// Without a pipeline, a fast backward makes up for a slow forward.
TEST_F(HostLaunches, ForwardAndBackwardAreComparedTogether) {
  times.launchForward = Seconds{0.018};
  times.launchBackward = Seconds{0.010};
  EXPECT_NEAR(stepSecondsOf(problem()).value, 4 * 2 * 0.030, 1e-12);
  times.launchBackward = Seconds{0.022};
  EXPECT_NEAR(stepSecondsOf(problem()).value, 4 * 2 * 0.040, 1e-12);
  EXPECT_NEAR(problem().stages[0].chunks[0].launch.value, 2 * 0.010, 1e-12);
}

// In a pipeline, each phase takes the longer of both times. Two equal stages
// run 4 micro-batches in the time of 5.
TEST_F(HostLaunches, APipelineComparesEachPhase) {
  config.pp = 2;
  times.launchForward = Seconds{0.018};
  times.launchBackward = Seconds{0.010};
  EXPECT_NEAR(stepSecondsOf(problem()).value, 5 * 2 * (0.018 + 0.020), 1e-12);
}

TEST_F(HostLaunches, WorkOnceAStepIsAddedToEveryStage) {
  software.host.step = Seconds{0.3};
  software.host.shardedStep = Seconds{0.5};
  EXPECT_NEAR(stepSecondsOf(problem()).value, 0.24 + 0.3, 1e-12);
  config.zeroStage = 1;
  EXPECT_NEAR(stepSecondsOf(problem()).value, 0.24 + 0.8, 1e-12);
}

// The host takes its time even for an empty message.
TEST_F(HostLaunches, MessagesWaitForTheHost) {
  config.pp = 2;
  const double before = problem().stages[0].chunks[0].sendForward.value;
  software.host.message = Seconds{0.25};
  EXPECT_NEAR(problem().stages[0].chunks[0].sendForward.value, before + 0.25,
              1e-12);
}

// The parts of a step add up, with launches among them.
TEST(HostLaunchesOfAModel, AddUpToTheStep) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Case drawn = drawTiny(seed);
    SearchOptions options = drawn.options;
    Software slow = *options.software;
    slow.host.kernel = Seconds{1e-3};
    slow.host.step = Seconds{4e-3};
    options.software = &slow;
    const SearchResult result = search(drawn.model, drawn.machine, options);
    ASSERT_FALSE(result.plans.empty());
    for (const PlannedCandidate &plan : result.plans) {
      const StepTime &time = plan.time;
      EXPECT_NEAR((time.compute + time.local + time.tensor + time.context +
                   time.exchange + time.data + time.update + time.host +
                   time.launch + time.pipeline)
                      .value,
                  time.step.value, 1e-9 * time.step.value);
      // Kernels take 1 ms, and the device is far faster.
      EXPECT_GE(time.launch.value, 4e-3 + 1e-3);
    }
  }
}

// Returns the times of a segment that only gathers one tensor over two tensor
// ranks.
PhaseTimes timesOnTensorRanks(const HostLaunch &host, int devices,
                              int devicesPerNode) {
  Machine machine = roundMachine();
  machine.devicesPerNode = devicesPerNode;
  Software software = defaultSoftware();
  software.host = host;
  Setting setting;
  setting.mesh = meshOf(1, 2);
  setting.machine = &machine;
  setting.software = &software;
  setting.devices = devices;
  SegmentPlan plan;
  SegmentGraph segment;
  segment.tensors.resize(1);
  segment.tensors[0].shape = {4, 4};
  segment.tensors[0].elementBytes = 2;
  segment.tensors[0].kind = TensorKind::activation;
  ModelGraph one;
  one.segments = {segment};
  PlannedConversion conversion;
  conversion.tensor = 0;
  conversion.phase = Phase::forward;
  conversion.from = withPlacement(Layout::replicated(2), kTensorAxis, 0);
  conversion.to = Layout::replicated(2);
  plan.conversions = {conversion};
  plan.made.resize(1);
  std::vector<bool> paid;
  return phaseTimesOf(one, plan, setting, paid);
}

TEST(HostLaunchesOfAModel, ACollectiveDependsOnNodesAndStages) {
  HostLaunch host;
  host.collective = Seconds{1.0};
  host.perRankAcrossNodes = Seconds{10.0};
  host.perRankPipelined = Seconds{100.0};
  host.perRankPipelinedAcrossNodes = Seconds{1000.0};
  for (const auto &[devices, perNode, seconds] :
       {std::tuple(2, 2, 1.0), std::tuple(2, 1, 21.0), std::tuple(4, 2, 201.0),
        std::tuple(4, 1, 2001.0)}) {
    const PhaseTimes times = timesOnTensorRanks(host, devices, perNode);
    EXPECT_EQ(times.launchForward.value, seconds) << devices << ' ' << perNode;
    EXPECT_EQ(times.launchBackward.value, 0.0);
  }
}

// A slowdown multiplies the time of a collective, not that of its copies.
TEST(TensorSlowdown, DependsOnTheNodesOfTheGroup) {
  Machine machine = roundMachine();
  Software software;
  Setting setting;
  setting.mesh = meshOf(1, 2);
  setting.machine = &machine;
  setting.software = &software;
  const StepMove move{StepKind::allGather, kTensorAxis};
  const auto timeOn = [&](int devicesPerNode) {
    machine.devicesPerNode = devicesPerNode;
    return exposedTime(move, 64, 2, Phase::forward, setting).value;
  };
  const double inNode = timeOn(2), across = timeOn(1);
  software.tensor.slowdown = 2.0;
  software.tensor.slowdownAcrossNodes = 3.0;
  EXPECT_DOUBLE_EQ(timeOn(2), 2.0 * inNode);
  EXPECT_DOUBLE_EQ(timeOn(1), 3.0 * across);
}

} // namespace
} // namespace mtplan::planner
