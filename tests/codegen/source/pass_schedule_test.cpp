//===- pass_schedule_test.cpp - Schedules as passes -----------------------===//

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/source/pass_schedule.h"

namespace mtplan::codegen {
namespace {

using namespace runtime;

/// Returns a program with one instruction per label.
Program program(const std::string &name,
                const std::vector<std::string> &labels) {
  Program one;
  one.name = name;
  for (const std::string &label : labels) {
    Instruction instruction;
    instruction.label = label;
    instruction.what = KernelCall{};
    one.instructions.push_back(instruction);
  }
  return one;
}

Program message(const std::string &name, bool sends) {
  Program one = program(name, {"carried"});
  Transfer transfer{};
  transfer.sends = sends;
  one.instructions.front().what = transfer;
  return one;
}

/// Returns a stage of `parts` virtual stages. Virtual stage p has the programs
/// 4 p (receives), 4 p + 1 (forward), 4 p + 2 (backward) and 4 p + 3 (sends).
Stage stageOf(int parts) {
  Stage stage;
  for (int p = 0; p < parts; ++p) {
    const std::string segment = "h_" + std::to_string(p);
    stage.programs.push_back(message("receive.forward", false));
    stage.programs.push_back(program(segment + ".forward", {"x"}));
    stage.programs.push_back(program(segment + ".backward", {"x"}));
    stage.programs.push_back(message("send.forward", true));
  }
  return stage;
}

void forward(Stage &stage, int part, int microBatch) {
  for (const int program : {0, 1, 3})
    stage.schedule.push_back({4 * part + program, microBatch});
}
void backward(Stage &stage, int part, int microBatch) {
  stage.schedule.push_back({4 * part + 2, microBatch});
}

TEST(PassSchedule, APassReceivesComputesAndSends) {
  Stage stage = stageOf(1);
  forward(stage, 0, 0);
  forward(stage, 0, 1);
  backward(stage, 0, 0);
  backward(stage, 0, 1);
  const PassSchedule schedule = passesOf(stage);
  ASSERT_EQ(schedule.passes.size(), 2u);
  EXPECT_EQ(schedule.passes[0].entries.size(), 3u);
  EXPECT_FALSE(schedule.passes[0].isBackward);
  EXPECT_TRUE(schedule.passes[1].isBackward);
  EXPECT_EQ(schedule.runs.size(), 4u);
  EXPECT_EQ(schedule.parts, 1u);
  EXPECT_EQ(schedule.groupSize, 0);
  EXPECT_EQ(runsBeforeBackward(schedule), 2);
}

TEST(PassSchedule, PartsThatTakeTurnsByGroupsAreFound) {
  constexpr int kParts = 3, kGroup = 2, kBatches = 4;
  Stage stage = stageOf(kParts);
  for (int first = 0; first < kBatches; first += kGroup)
    for (int part = 0; part < kParts; ++part)
      for (int batch = first; batch < first + kGroup; ++batch)
        forward(stage, part, batch);
  for (int first = 0; first < kBatches; first += kGroup)
    for (int part = kParts; part-- > 0;)
      for (int batch = first; batch < first + kGroup; ++batch)
        backward(stage, part, batch);
  const PassSchedule schedule = passesOf(stage);
  EXPECT_EQ(schedule.parts, 3u);
  EXPECT_EQ(schedule.groupSize, kGroup);
  for (const Pass &pass : schedule.passes)
    if (pass.isBackward) {
      EXPECT_EQ(pass.entries.front().program,
                4 * static_cast<int>(pass.part) + 2);
    }
}

TEST(PassSchedule, AnotherOrderHasNoGroups) {
  Stage stage = stageOf(2);
  for (const int part : {0, 1, 1, 0})
    forward(stage, part, part == 0 ? 0 : 1);
  backward(stage, 1, 0);
  backward(stage, 0, 0);
  EXPECT_EQ(passesOf(stage).groupSize, 0);
}

/// Returns a plan with one stage whose backward program begins with two
/// recomputed instructions.
Plan recomputed() {
  Plan plan;
  Stage &stage = plan.stages.emplace_back();
  stage.programs.push_back(program(
      "h.backward", {"h.*.a.again", "h.*.b.again", "h.*.b.dx", "h.*.a.dx"}));
  stage.programs.front().instructions[3].waits = {2};
  stage.programs.front().batches = {{{2, 3}}};
  stage.schedule.push_back({0, 0, 3, -1, 4});
  return plan;
}

TEST(Recomputation, IsAProgramOfItsOwn) {
  Plan plan = recomputed();
  splitRecomputation(plan);
  const Stage &stage = plan.stages.front();
  ASSERT_EQ(stage.programs.size(), 2u);
  EXPECT_EQ(stage.programs[0].name, "h.recompute.backward");
  EXPECT_EQ(stage.programs[1].name, "h.backward");
  EXPECT_EQ(stage.programs[0].instructions.size(), 2u);
  EXPECT_TRUE(stage.programs[0].batches.empty());
  EXPECT_EQ(stage.programs[1].instructions[1].waits, std::vector{0});
  EXPECT_EQ(stage.programs[1].batches[0].instructions, (std::vector{0, 1}));
  ASSERT_EQ(stage.schedule.size(), 2u);
  EXPECT_EQ(stage.schedule[1].program, 1);
  EXPECT_EQ(stage.schedule[1].count, 4);
  EXPECT_TRUE(isRecomputation(stage.programs[0]));
  EXPECT_FALSE(isRecomputation(stage.programs[1]));
}

TEST(Recomputation, StaysWhereGradientsWaitForIt) {
  Plan plan = recomputed();
  plan.stages.front().programs.front().instructions[2].waits = {1};
  splitRecomputation(plan);
  EXPECT_EQ(plan.stages.front().programs.size(), 1u);
}

} // namespace
} // namespace mtplan::codegen
