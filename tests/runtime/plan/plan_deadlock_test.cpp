//===- plan_deadlock_test.cpp - Stages that deadlock ----------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_check.h"
#include "tests/runtime/plan/pipeline_plan.h"

using namespace mtplan::runtime;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

Plan plain(int pp) {
  return PipelinePlan({.pp = pp,
                       .dp = 1,
                       .tp = 1,
                       .layers = 1,
                       .microBatches = 2,
                       .chain = 1,
                       .samples = 1,
                       .positions = 2,
                       .hidden = 4,
                       .zero = false,
                       .forwardsFirst = true,
                       .type = ElementType::f32})
      .make();
}

// Adds a program at the end of a stage's reduction. All calls of the program
// access the same number.
class Ending {
public:
  Ending(Plan &plan, std::size_t number) : stage(plan.stages[number]) {
    Arena &arena =
        stage.arenas[static_cast<std::size_t>(MemoryClass::gradients)];
    Buffer made;
    made.name = "sum";
    made.arena = static_cast<int>(MemoryClass::gradients);
    made.offset = arena.size;
    made.size = 4;
    arena.size += kAlignment;
    stage.buffers.push_back(made);
    sum = tensorAt(static_cast<int>(stage.buffers.size()) - 1, {});
    program = static_cast<int>(stage.programs.size());
    stage.programs.push_back({"ending", {}});
    stage.reduce.push_back({program, 0, 0, 1, 1});
    add(KernelCall{"zeros", {}}, false, true);
  }

  Ending &send(int to) { return add(Transfer{true, to, 9}, true, false); }
  Ending &receive(int from) {
    return add(Transfer{false, from, 9}, false, true);
  }
  Ending &join(int group) {
    return add(Collective{CollectiveKind::allReduce, group}, true, true);
  }

private:
  Ending &add(decltype(Instruction::what) what, bool reads, bool writes) {
    Instruction made{.label = "sum",
                     .what = std::move(what),
                     .inputs = {},
                     .outputs = {},
                     .stream = 0,
                     .waits = {}};
    if (reads)
      made.inputs = {sum};
    if (writes)
      made.outputs = {sum};
    stage.programs[static_cast<std::size_t>(program)].instructions.push_back(
        made);
    return *this;
  }

  Stage &stage;
  Tensor sum;
  int program = 0;
};

TEST(PlanDeadlock, SendsDoNotWait) {
  Plan plan = plain(2);
  Ending(plan, 0).send(1).receive(1);
  Ending(plan, 1).send(0).receive(0);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
}

TEST(PlanDeadlock, BothReceiveFirst) {
  Plan plan = plain(2);
  Ending(plan, 0).receive(1).send(1);
  Ending(plan, 1).receive(0).send(0);
  EXPECT_THAT(
      checkPlan(plan),
      ElementsAre(AllOf(
          StartsWith("/stages/0/programs/10/instructions/1: stages wait for "
                     "each other: stage 0 waits in "
                     "/stages/0/programs/10/instructions/1 (\"sum\", "
                     "micro-batch 0) for stage 1; stage 1 waits in "),
          HasSubstr("for stage 0"))));
}

// Three stages in a ring each receive before they send.
TEST(PlanDeadlock, ARingOfReceives) {
  Plan plan = plain(3);
  Ending(plan, 0).receive(2).send(1);
  Ending(plan, 1).receive(0).send(2);
  Ending(plan, 2).receive(1).send(0);
  EXPECT_THAT(checkPlan(plan),
              ElementsAre(AllOf(HasSubstr(") for stage 2; stage 2 waits"),
                                HasSubstr(") for stage 1; stage 1 waits"),
                                HasSubstr(") for stage 0"))));
  // If one stage sends first, all of them proceed.
  plan = plain(3);
  Ending(plan, 0).send(1).receive(2);
  Ending(plan, 1).receive(0).send(2);
  Ending(plan, 2).receive(1).send(0);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
}

// Two stages call two groups in opposite orders, although the calls of each
// group alone are in order.
TEST(PlanDeadlock, TwoGroupsInTwoOrders) {
  Plan plan = plain(2);
  plan.groups.push_back({"again", {{0, 1}}});
  Ending(plan, 0).join(2).join(3);
  Ending(plan, 1).join(2).join(3);
  EXPECT_THAT(checkPlan(plan), IsEmpty());
  plan = plain(2);
  plan.groups.push_back({"again", {{0, 1}}});
  Ending(plan, 0).join(2).join(3);
  Ending(plan, 1).join(3).join(2);
  EXPECT_THAT(checkPlan(plan), ElementsAre(HasSubstr("wait for each other")));
}

// One stage receives a message before an all-reduce. The other stage sends that
// message after the all-reduce.
TEST(PlanDeadlock, MessageAfterACollective) {
  Plan plan = plain(2);
  Ending(plan, 0).receive(1).join(2);
  Ending(plan, 1).join(2).send(0);
  EXPECT_THAT(checkPlan(plan), ElementsAre(HasSubstr("wait for each other")));
}

// The last stage receives the second micro-batch first.
TEST(PlanDeadlock, MessagesInAnotherOrder) {
  Plan plan = plain(2);
  for (ScheduleEntry &entry : plan.stages[1].schedule)
    entry.microBatch = 1 - entry.microBatch;
  for (Program &program : plan.stages[1].programs)
    for (Instruction &one : program.instructions)
      if (auto *call = std::get_if<KernelCall>(&one.what))
        for (Setting &setting : call->settings)
          if (setting.name == kFirstTerm)
            setting.value = std::int64_t{1};
  EXPECT_THAT(checkPlan(plan),
              testing::Contains(HasSubstr(
                  "message 0 of channel 1 from stage 0 to stage 1 is "
                  "\"carried\", [1, 2, 4] of f32, of micro-batch 0, but is "
                  "received as \"carried\", [1, 2, 4] of f32, of micro-batch "
                  "1")));
}

} // namespace
