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

// The message of nothing takes the host's time.
TEST_F(HostLaunches, MessagesWaitForTheHost) {
  config.pp = 2;
  const double before = problem().stages[0].chunks[0].sendForward.value;
  software.host.message = Seconds{0.25};
  EXPECT_NEAR(problem().stages[0].chunks[0].sendForward.value, before + 0.25,
              1e-12);
}

// A random model: launches are counted per kernel and per collective, and the
// parts of the step still add up.
TEST(HostLaunchesOfAModel, AddUpToTheStep) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Case drawn = drawTiny(seed);
    SearchOptions options = drawn.options;
    Software slow = *options.software;
    slow.host.kernel = Seconds{1e-3};
    slow.host.collective = Seconds{2e-3};
    slow.host.perRankPipelined = Seconds{1e-3};
    slow.host.step = Seconds{4e-3};
    options.software = &slow;
    const SearchResult result = search(drawn.model, drawn.machine, options);
    for (const PlannedCandidate &plan : result.plans) {
      const StepTime &time = plan.time;
      EXPECT_NEAR((time.compute + time.local + time.tensor + time.context +
                   time.exchange + time.data + time.update + time.host +
                   time.launch + time.pipeline)
                      .value,
                  time.step.value, 1e-9 * time.step.value);
      EXPECT_GE(time.launch.value, 4e-3);
    }
  }
}

} // namespace
} // namespace mtplan::planner
