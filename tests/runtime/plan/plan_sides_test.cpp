//===- plan_sides_test.cpp - Checks of offloaded plans --------------------===//

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_queries.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::runtime {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::size_t kForward = 0, kReduce = 2, kApply = 3; // program indices
constexpr int kArrived = 7, kMaster = 8;                     // buffer indices

// Returns twoReplicas() with the optimizer in the host's memory: the moments, a
// master weight, and a buffer that receives the gradient.
Plan offloaded() {
  Plan plan = twoReplicas();
  Stage &stage = plan.stages[0];
  stage.arenas[1] = {MemoryClass::host, 1024};
  for (const auto &[name, offset] :
       {std::pair("fc.weight.arrived", 512), {"fc.weight.master", 768}}) {
    Buffer made;
    made.name = name;
    made.arena = 1;
    made.offset = offset;
    made.size = 96;
    stage.buffers.push_back(made);
  }
  Parameter &parameter = stage.parameters[0];
  const Tensor arrived = tensorAt(kArrived, {6, 4}),
               master = tensorAt(kMaster, {6, 4});
  parameter.master = master;
  stage.programs[kApply].instructions = {
      kernelCall("fc.weight", "copy", {}, {parameter.gradient}, {arrived}),
      kernelCall(
          "fc.weight", "adamw", {}, {arrived},
          {master, master, parameter.firstMoment, parameter.secondMoment}),
      kernelCall("fc.weight", "copy", {}, {master}, {parameter.value})};
  return plan;
}

std::vector<std::string>
faultsAfter(const std::function<void(Stage &stage)> &change) {
  Plan plan = offloaded();
  change(plan.stages[0]);
  return checkPlan(plan);
}

TEST(PlanSides, AreThoseOfTheOperands) {
  const Plan plan = offloaded();
  std::vector<Side> sides;
  for (const Instruction &one : plan.stages[0].programs[kApply].instructions)
    sides.push_back(sideOf(plan.stages[0], one));
  EXPECT_THAT(sides, ElementsAre(Side::down, Side::host, Side::up));
  for (std::size_t p : {kForward, kReduce})
    for (const Instruction &one : plan.stages[0].programs[p].instructions)
      EXPECT_EQ(sideOf(plan.stages[0], one), Side::device) << one.label;
  EXPECT_THAT(checkPlan(plan), IsEmpty());
}

TEST(PlanSides, OnlyCopiesCrossSides) {
  EXPECT_THAT(
      faultsAfter([](Stage &stage) {
        stage.programs[kApply].instructions[1].inputs = {
            stage.parameters[0].gradient};
      }),
      Contains("/stages/0/programs/3/instructions/1: has operands in the "
               "host's memory and in the device's; only a copy of one tensor "
               "leads from one to the other"));
}

TEST(PlanSides, CopiesAcrossKeepTypeAndShape) {
  EXPECT_THAT(
      faultsAfter([](Stage &stage) {
        auto &all = stage.programs[kApply].instructions;
        all[0].outputs[0].type = all[1].inputs[0].type = ElementType::bf16;
      }),
      ElementsAre("/stages/0/programs/3/instructions/0/outputs/0: is [6, 4] of "
                  "bf16, but [6, 4] of f32 is what is copied between the "
                  "host's memory and the device's"));
  EXPECT_THAT(
      faultsAfter([](Stage &stage) {
        auto &all = stage.programs[kApply].instructions;
        all[0].outputs[0].shape = all[1].inputs[0].shape = {4, 6};
      }),
      Contains(StartsWith("/stages/0/programs/3/instructions/0/outputs/0: is "
                          "[4, 6] of f32, but [6, 4] of f32 is")));
}

TEST(PlanSides, TheHostComputesInApplyAlone) {
  EXPECT_THAT(faultsAfter([](Stage &stage) {
                stage.programs[kForward].instructions.push_back(kernelCall(
                    "early", "zeros", {}, {}, {tensorAt(kArrived, {6, 4})}));
              }),
              ElementsAre("/stages/0/programs/0/instructions/2: works in the "
                          "host's memory, but \"fc.forward\" does not run in "
                          "/apply alone; before it the host only queues"));
  EXPECT_THAT(faultsAfter([](Stage &stage) {
                stage.programs[kReduce].instructions.push_back(kernelCall(
                    "early", "zeros", {}, {}, {tensorAt(kArrived, {6, 4})}));
              }),
              ElementsAre(HasSubstr("does not run in /apply alone")));
}

TEST(PlanSides, HostRunsKernelsAlone) {
  EXPECT_THAT(
      faultsAfter([](Stage &stage) {
        Instruction sum = stage.programs[kReduce].instructions[0];
        sum.inputs = sum.outputs = {tensorAt(kArrived, {6, 4})};
        auto &all = stage.programs[kApply].instructions;
        all.insert(all.begin() + 1, sum);
      }),
      Contains("/stages/0/programs/3/instructions/1: has operands in the "
               "host's memory, where only kernels run"));
}

TEST(PlanSides, TheHostHasTheStateAlone) {
  EXPECT_THAT(faultsAfter([](Stage &stage) {
                stage.buffers[0].arena = 1;
                stage.buffers[0].offset = 512;
              }),
              Contains("/stages/0/parameters/0/value/buffer: buffer 0 "
                       "(\"fc.weight\") is of class host; it must be "
                       "parameters"));
}

} // namespace
} // namespace mtplan::runtime
