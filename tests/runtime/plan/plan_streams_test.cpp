//===- plan_streams_test.cpp - Checks of concurrent streams ---------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_check.h"
#include "tests/runtime/plan/two_replicas.h"

using namespace mtplan::runtime;
using testing::Contains;
using testing::StartsWith;

namespace {

// Micro-batches use slots in turn. Accesses to different bytes in the first
// micro-batch may therefore overlap in a later one.
TEST(PlanStreams, AreCheckedInEveryMicroBatch) {
  Plan plan = twoReplicas();
  Stage &stage = plan.stages[0];
  Program &forward = stage.programs[0];
  // The buffer is an alias of slot 1 of x.
  Buffer beside = stage.buffers[4];
  beside.offset += beside.slotStride;
  beside.slots = 1;
  beside.slotStride = 0;
  stage.buffers.push_back(beside);
  Tensor other = forward.instructions[0].outputs[0];
  other.buffer = static_cast<int>(stage.buffers.size()) - 1;
  Instruction late = kernelCall("late", "zeros", {}, {}, {std::move(other)});
  late.stream = 1;
  forward.instructions.push_back(late);
  EXPECT_THAT(checkPlan(plan),
              Contains(testing::AllOf(
                  StartsWith("/stages/0/programs/0/instructions/2/waits: must "
                             "order this after instruction 1"),
                  testing::EndsWith(" (micro-batch 1, copy 0)"))));
}

TEST(PlanStreams, KeepCallsOfAGroupInOrder) {
  Plan plan = twoReplicas();
  std::vector<Instruction> &calls = plan.stages[0].programs[2].instructions;
  Instruction again = calls[0];
  again.stream = 0;
  again.inputs[0].buffer = again.outputs[0].buffer = 6; // fc.dw: other bytes
  calls.push_back(again);
  const std::string missing = "/stages/0/programs/2/instructions/1/waits: must "
                              "order this after instruction 0 (\"fc.weight\"), "
                              "which is the previous call of group \"dp\"";
  EXPECT_THAT(checkPlan(plan), Contains(missing));
  calls[1].waits = {0};
  EXPECT_THAT(checkPlan(plan), testing::Not(Contains(missing)));
}

} // namespace
