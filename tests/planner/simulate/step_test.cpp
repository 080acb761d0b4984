//===- step_test.cpp - Properties of every step ------------------===//

#include <random>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/simulate/step_problem.h"

namespace mtplan::planner {
namespace {

using enum ScheduleKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

double workOf(const StageTimes &stage, int microBatches) {
  double sum = 0.0;
  for (const ChunkTimes &chunk : stage.chunks)
    for (const SliceTimes &slice : chunk.slices)
      sum += slice.count * (slice.forward.value + slice.backward.value);
  return microBatches * sum;
}

TEST(Step, TimeOfEachStageAddsUp) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    StepProblem problem = randomStep(random);
    ASSERT_THAT(check(problem), IsEmpty());
    StepResult result = simulated(problem);
    for (int i = 0; i < problem.shape.stages; ++i) {
      const StageUse &use = result.stages[i];
      double sum = 0.0;
      for (Seconds part :
           {use.busy, use.update, use.exposedPointToPoint, use.exposedData,
            use.exposedSync, use.exposedHost, use.bubble}) {
        EXPECT_GE(part.value, 0.0);
        sum += part.value;
      }
      EXPECT_NEAR(sum, result.step.value, 1e-9 * result.step.value + 1e-9)
          << "round " << round << " stage " << i;
      EXPECT_NEAR(use.busy.value,
                  workOf(problem.stages[i], problem.shape.microBatches), 1e-6);
      EXPECT_EQ(use.inFlight, inFlight(problem.shape, i));
    }
  }
}

TEST(Step, TimeAloneEqualsTheFullResult) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    StepProblem problem = randomStep(random);
    StepResult result = simulated(problem);
    EXPECT_EQ(stepSeconds(problem, scheduleOf(problem.shape)), result.step);
    EXPECT_EQ(result.tasks.size(), std::size_t(result.graph.size()));
    EXPECT_TRUE(result.graph.isInOrder());
    EXPECT_THAT(result.timeline.stuck, IsEmpty());
    // Equal inputs give equal bits.
    StepResult again = simulated(problem);
    EXPECT_EQ(again.timeline.start, result.timeline.start);
    EXPECT_EQ(again.timeline.finish, result.timeline.finish);
  }
}

/// Returns every duration of a problem, except weight gradients, which are
/// parts of backwards.
std::vector<Seconds *> durationsOf(StepProblem &problem) {
  std::vector<Seconds *> all = {&problem.tied, &problem.gradientNorm};
  for (StageTimes &stage : problem.stages) {
    all.push_back(&stage.update);
    for (ChunkTimes &chunk : stage.chunks) {
      for (Seconds *time : {&chunk.sendForward, &chunk.sendBackward,
                            &chunk.down, &chunk.hostUpdate, &chunk.up})
        all.push_back(time);
      for (SliceTimes &slice : chunk.slices)
        for (Seconds *time :
             {&slice.forward, &slice.backward, &slice.gather, &slice.reduce})
          all.push_back(time);
    }
  }
  return all;
}

TEST(Step, LongerTasksNeverEndItSooner) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    StepProblem problem = randomStep(random);
    Schedule schedule = scheduleOf(problem.shape);
    double before = stepSeconds(problem, schedule).value;
    for (Seconds *time : durationsOf(problem)) {
      Seconds kept = *time;
      *time = kept + Seconds{double(1 + random() % 9)};
      EXPECT_GE(stepSeconds(problem, schedule).value, before)
          << "round " << round;
      *time = kept;
    }
  }
}

TEST(Step, OverlapNeverHurtsOnAStageOfItsOwn) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    StepProblem problem = randomStep(random);
    problem.shape = {oneForwardOneBackward, 1, 1, 1 + round % 5};
    problem.stages.resize(1);
    problem.stages[0].chunks.resize(1);
    problem.overlap = {false, false, false, false, false, false};
    double exposed = simulated(problem).step.value;
    problem.overlap = {};
    EXPECT_LE(simulated(problem).step.value, exposed) << round;
  }
}

TEST(Step, BrokenProblemsAreNamed) {
  StepProblem good = equalStages({interleaved, 2, 2, 4}, 1.0, 2.0, 1.0);
  EXPECT_THAT(check(good), IsEmpty());

  StepProblem bad = good;
  bad.shape.microBatches = 5;
  EXPECT_THAT(check(bad), ElementsAre(HasSubstr("got 5; nearest: 4 or 6")));
  bad = good;
  bad.stages.pop_back();
  EXPECT_THAT(check(bad), ElementsAre("step: needs 2 stages, got 1"));
  bad = good;
  bad.stages[1].chunks.resize(3);
  EXPECT_THAT(check(bad), ElementsAre("stage 1: needs 2 chunks, got 3"));
  bad = good;
  bad.stages[0].chunks[1].slices[0].weightGradient = {2.5};
  EXPECT_THAT(check(bad),
              ElementsAre("stage 0, chunk 1, slice 0: the gradient of weights "
                          "takes 2.500000 s of a backward of 2.000000 s"));
  bad = good;
  bad.prefetch = -1;
  bad.gradientNorm = {-1.0};
  bad.stages[0].chunks[0].slices[0].count = -1;
  EXPECT_THAT(check(bad),
              ElementsAre(HasSubstr("has -1 segments"),
                          HasSubstr("the norm of gradients takes -1.0"),
                          HasSubstr("prefetches -1 segments")));
}

TEST(Step, EveryTimeIsChecked) {
  std::mt19937_64 random(5);
  for (double wrong : {-1.0, 1.0 / 0.0, 0.0 / 0.0}) {
    StepProblem problem = randomStep(random);
    for (Seconds *time : durationsOf(problem)) {
      Seconds kept = *time;
      time->value = wrong;
      EXPECT_FALSE(check(problem).empty());
      *time = kept;
    }
  }
}

TEST(Step, DeadlockedSchedulesAreRejected) {
  StepProblem problem = equalStages({gpipe, 2, 1, 1}, 1.0, 2.0);
  Schedule schedule = scheduleOf(problem.shape);
  std::swap(schedule[0][0], schedule[0][1]);
  EXPECT_THROW(simulateStep(problem, schedule), std::invalid_argument);
  EXPECT_THROW(stepSeconds(problem, schedule), std::invalid_argument);
}

} // namespace
} // namespace mtplan::planner
