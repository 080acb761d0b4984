//===- first_terms_test.cpp - What gradients' sums begin with -------------===//

#include <cstdint>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/first_terms.h"
#include "runtime/plan/first_term.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"
#include "tests/runtime/plan/two_replicas.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

using codegen::storeFirstTerms;
using runtime::Instruction, runtime::KernelCall, runtime::Plan, runtime::Stage;
using testing::ElementsAre;
using testing::IsEmpty;

runtime::FirstTerm firstOf(const Instruction &one) {
  return runtime::firstTermOf(std::get<KernelCall>(one.what).settings);
}

/// Of what adds to a sum in `program`, in order.
std::vector<std::int64_t> termsOf(const Stage &stage, int program) {
  std::vector<std::int64_t> terms;
  for (const Instruction &one :
       stage.programs[static_cast<std::size_t>(program)].instructions)
    if (const auto *call = std::get_if<KernelCall>(&one.what);
        call && call->kernel == "accumulate")
      terms.push_back(firstOf(one).microBatch);
  return terms;
}

/// twoReplicas() before its one sum, of program 1, has a first term.
Plan withoutFirst() {
  Plan plan = runtime::twoReplicas();
  auto &accumulate = plan.stages[0].programs[1].instructions[1];
  std::get<KernelCall>(accumulate.what).settings.clear();
  return plan;
}

/// What it becomes after `change`.
Stage storedAfter(const std::function<void(Stage &)> &change) {
  Plan plan = withoutFirst();
  change(plan.stages[0]);
  EXPECT_THAT(storeFirstTerms(plan.stages[0]), IsEmpty());
  EXPECT_THAT(runtime::checkPlan(plan), IsEmpty());
  return plan.stages[0];
}

TEST(FirstTerms, AreOfTheFirstMicroBatchThatRuns) {
  Stage stage = storedAfter([](Stage &) {});
  EXPECT_THAT(termsOf(stage, 1), ElementsAre(0));
  stage = storedAfter(
      [](Stage &one) { std::swap(one.schedule[2], one.schedule[3]); });
  EXPECT_THAT(termsOf(stage, 1), ElementsAre(1));
}

TEST(FirstTerms, AreOfWhoComesFirst) {
  const Stage stage = storedAfter([](Stage &one) {
    auto &list = one.programs[1].instructions;
    list.push_back(list[1]);
  });
  EXPECT_THAT(termsOf(stage, 1), ElementsAre(0, -1));
}

/// The same of a sum that has none.
std::vector<std::int64_t>
termsWithout(const std::function<void(Stage &)> &change) {
  Plan plan = withoutFirst();
  change(plan.stages[0]);
  EXPECT_THAT(storeFirstTerms(plan.stages[0]),
              ElementsAre("fc.weight.gradient"));
  return termsOf(plan.stages[0], 1);
}

TEST(FirstTerms, AreNotOfASumThatIsReadBefore) {
  EXPECT_THAT(termsWithout([](Stage &one) {
                auto &list = one.programs[1].instructions;
                list.insert(list.begin(), runtime::kernelCall(
                                              "look", "copy", {},
                                              list[1].outputs, list[1].inputs));
              }),
              ElementsAre(-1));
}

TEST(FirstTerms, AreNotOfAPartOfAPiece) {
  EXPECT_THAT(termsWithout([](Stage &one) { one.buffers[1].size = 100; }),
              ElementsAre(-1));
}

/// A sum of two pieces, or of three, a copy of the layer each.
void divide(Stage &stage, int pieces,
            std::vector<runtime::ScheduleEntry> schedule) {
  stage.buffers[1].entries = pieces;
  stage.buffers[1].entryStride = 256;
  stage.programs[1].instructions[1].outputs[0].entryStep = 1;
  stage.schedule = std::move(schedule);
  stage.reduce.clear();
  stage.apply.clear();
}

TEST(FirstTerms, AreOfTheSameMicroBatchInAllPieces) {
  Stage stage = withoutFirst().stages[0];
  divide(stage, 2,
         {{.program = 1, .microBatch = 0, .first = 0},
          {.program = 1, .microBatch = 0, .first = 1},
          {.program = 1, .microBatch = 1, .first = 0},
          {.program = 1, .microBatch = 1, .first = 1}});
  EXPECT_THAT(storeFirstTerms(stage), IsEmpty());
  EXPECT_THAT(termsOf(stage, 1), ElementsAre(0));
  EXPECT_THAT(termsWithout([](Stage &one) {
                divide(one, 2,
                       {{.program = 1, .microBatch = 0, .first = 0},
                        {.program = 1, .microBatch = 1, .first = 1}});
              }),
              ElementsAre(-1));
  // Nothing is added to the third.
  EXPECT_THAT(termsWithout([](Stage &one) {
                divide(one, 3,
                       {{.program = 1, .microBatch = 0, .first = 0},
                        {.program = 1, .microBatch = 0, .first = 1}});
              }),
              ElementsAre(-1));
}

// Of a table that all layers look up.
TEST(FirstTerms, AreOfOneCopyWhereAllAddToOneSum) {
  const Stage stage = storedAfter([](Stage &one) {
    one.programs[1].firstCopy = 6;
    for (std::size_t i : {2U, 3U}) {
      one.schedule[i].first = 1;
      one.schedule[i].step = -1;
      one.schedule[i].count = 2;
    }
  });
  const runtime::FirstTerm first = firstOf(stage.programs[1].instructions[1]);
  EXPECT_EQ(first.microBatch, 0);
  EXPECT_EQ(first.copy, 7);
}

// The second of them is the first in the third piece, and in the second adds.
TEST(FirstTerms, AreOfOneCopyWhereOthersAreLater) {
  Stage stage = withoutFirst().stages[0];
  divide(stage, 3,
         {{.program = 1, .microBatch = 0, .first = 1},
          {.program = 1, .microBatch = 0, .first = 0}});
  auto &list = stage.programs[1].instructions;
  list.push_back(list[1]);
  list[2].outputs[0].entry = 1;
  EXPECT_THAT(storeFirstTerms(stage), IsEmpty());
  EXPECT_THAT(termsOf(stage, 1), ElementsAre(0, 0));
  EXPECT_EQ(firstOf(list[1]).copy, -1);
  EXPECT_EQ(firstOf(list[2]).copy, 1);
}

// Where ranks hold a part, the host has the state, weights are tied; over
// several micro-batches.
TEST(FirstTerms, AreOfAllThatIsCompiled) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> compiled{
      {"tiny-gpt2", {"--gpus", "2", "--pp", "2"}},
      {"tiny-gpt2",
       {"--gpus", "2", "--zero", "1", "--offload", "optimizer", "--hardware",
        "dgx-1"}},
      {"tiny-llama", {"--gpus", "2", "--zero", "2", "--overlap", "on"}},
      {"tiny-llama", {"--gpus", "2", "--zero", "3"}},
      {"tiny-mixtral", {"--gpus", "2", "--ep", "2"}},
      {"tiny-t5", {"--gpus", "1"}}};
  for (const auto &[model, how] : compiled) {
    SCOPED_TRACE(model + ' ' + testing::PrintToString(how));
    const TestFolder folder;
    EXPECT_EQ(compileExample(model, folder / "run", how), "");
    const Plan plan = runtime::readPlanFile(folder / "run/plan.json");
    EXPECT_GT(plan.microBatches, 1);
  }
}

} // namespace
} // namespace mtplan
