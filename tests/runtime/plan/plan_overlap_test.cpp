//===- plan_overlap_test.cpp - Checks of overlapped collectives -----------===//

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_check.h"
#include "tests/runtime/plan/two_replicas.h"

using namespace mtplan::runtime;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

enum { kForward, kBackward, kReduce, kApply };

constexpr const char *kThere = "/stages/0/programs/1/instructions/2/overlapped";

/// Returns twoReplicas() with an overlapped all-reduce of the gradient. It is
/// at the end of the backward program instead of in /reduce.
Plan overlapped() {
  Plan plan = twoReplicas();
  Stage &stage = plan.stages[0];
  Instruction sum = stage.programs[kReduce].instructions[0];
  sum.overlapped = true;
  sum.waits = {1};
  stage.programs[kBackward].instructions.push_back(sum);
  stage.programs.erase(stage.programs.begin() + kReduce);
  stage.reduce.clear();
  stage.apply[0].program = kReduce;
  return plan;
}

Instruction &sumOf(Plan &plan) {
  return plan.stages[0].programs[kBackward].instructions[2];
}

TEST(PlanOverlap, RunsWithTheLastMicroBatchAlone) {
  Plan plan = overlapped();
  EXPECT_THAT(checkPlan(plan), IsEmpty());
  // An unmarked all-reduce would run after each micro-batch, and the second
  // micro-batch would add to a reduced gradient.
  sumOf(plan).overlapped = false;
  EXPECT_THAT(checkPlan(plan), IsEmpty()); // only the results are wrong
  EXPECT_TRUE(runsFor(1, overlapped().stages[0].programs[1].instructions[2],
                      plan.microBatches));
  EXPECT_FALSE(runsFor(0, overlapped().stages[0].programs[1].instructions[2],
                       plan.microBatches));
}

TEST(PlanOverlap, IsOfCollectivesOnTheirStream) {
  Plan plan = overlapped();
  sumOf(plan).stream = 0;
  EXPECT_THAT(checkPlan(plan),
              Contains(std::string(kThere) +
                       ": is on stream 0, which all runs begin on"));
  plan = overlapped();
  plan.stages[0].programs[kBackward].instructions[1].overlapped = true;
  EXPECT_THAT(
      checkPlan(plan),
      Contains("/stages/0/programs/1/instructions/1/overlapped: is not a "
               "collective; only a collective may overlap later runs"));
}

TEST(PlanOverlap, IsOfTheScheduleAlone) {
  Plan plan = twoReplicas();
  plan.stages[0].programs[kReduce].instructions[0].overlapped = true;
  EXPECT_THAT(checkPlan(plan),
              Contains("/stages/0/programs/2/instructions/0/overlapped: is in "
                       "\"reduce\", which does not run in /schedule alone"));
}

// A later run reads the gradient that the all-reduce may still write.
TEST(PlanOverlap, OtherAccessesToItsBytesAreRejected) {
  Plan plan = overlapped();
  Stage &stage = plan.stages[0];
  Program more{"more", {}};
  more.instructions = {
      kernelCall("look", "copy", {}, {sumOf(plan).outputs[0]},
                 {stage.programs[kBackward].instructions[0].outputs[0]})};
  stage.programs.push_back(more);
  for (int microBatch : {0, 1})
    stage.schedule.push_back({.program = 3, .microBatch = microBatch});
  const auto meets = Contains(AllOf(
      StartsWith(kThere),
      HasSubstr("may still be under way when \"look\" of "
                "/stages/0/programs/3/instructions/0 touches the same bytes, "
                "in /stages/0/schedule/4 (copy 0)")));
  EXPECT_THAT(checkPlan(plan), meets);
  // If both are on the same stream, the copy runs after the all-reduce.
  stage.programs[3].instructions[0].stream = 1;
  EXPECT_THAT(checkPlan(plan), testing::Not(meets));
  // A copy before the all-reduce does not conflict with it.
  stage.programs[3].instructions[0].stream = 0;
  std::rotate(stage.schedule.begin(), stage.schedule.end() - 2,
              stage.schedule.end());
  EXPECT_THAT(checkPlan(plan), testing::Not(meets));
}

// An overlapped collective must not involve several stages, because the other
// stages would wait for this one.
TEST(PlanOverlap, IsOfOneStage) {
  Plan plan = overlapped();
  plan.stages.push_back(plan.stages[0]);
  plan.stages[0].ranks = {0};
  plan.stages[1].ranks = {1};
  EXPECT_THAT(checkPlan(plan),
              Contains(AllOf(StartsWith(kThere),
                             HasSubstr("is of group \"dp\", in which other "
                                       "stages wait for this one"))));
}

} // namespace
