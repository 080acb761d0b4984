//===- grouped_collectives_test.cpp - Plans with grouped collectives ------===//
//
// Runs plans on ranks with a device each, connected by NCCL. Runs with the
// plan's grouped collectives are compared with runs that launch each collective
// alone.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "tests/base/test_helpers.h"
#include "tests/emulator/nccl.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/runs/small_plan.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_process.h"

namespace mtplan::passes {
namespace {

using emulator::StreamOrder;
using runtime::Plan;

/// While an object exists, runs of this process group no collectives.
class Ungrouped : ScopedVariable {
public:
  Ungrouped() : ScopedVariable("MTPLAN_JOINT_COLLECTIVES", "0") {}
};

struct Ran {
  Gathered all;
  int launches = 0;
};

// Runs a queued, a recorded and a replayed step.
Ran ranOf(const Plan &plan, const ir::RunOptions &options) {
  emulator::setDevices(plan.ranks);
  ranksOnDevices = 0;
  emulator::takeNcclLaunches();
  Ran ran{runPlan(plan, options, makeOnOwnDevice, 1e-10, 3), 0};
  ran.launches = emulator::takeNcclLaunches();
  emulator::setDevices(1);
  EXPECT_THAT(emulator::takeNcclMisuses(), ::testing::IsEmpty());
  return ran;
}

/// Returns the number of launches that a program saves by grouping collectives.
int savedBy(const runtime::Program &program) {
  int saved = 0;
  for (const runtime::Batch &batch : program.batches)
    if (std::holds_alternative<runtime::Collective>(
            program.instructions[batch.instructions.front()].what))
      saved += static_cast<int>(batch.instructions.size()) - 1;
  return saved;
}

/// Returns the number of launches that grouping saves in two steps, over all
/// ranks.
int savedBy(const Plan &plan) {
  int saved = 0;
  for (const runtime::Stage &stage : plan.stages)
    for (auto entries : {&runtime::Stage::schedule, &runtime::Stage::reduce,
                         &runtime::Stage::apply})
      for (const runtime::ScheduleEntry &entry : stage.*entries)
        saved += 2 * entry.count * savedBy(stage.programs[entry.program]) *
                 static_cast<int>(stage.ranks.size());
  return saved;
}

void expectSameBits(const Plan &plan, const ir::RunOptions &options) {
  const Ran grouped = ranOf(plan, options);
  const Ungrouped ungrouped;
  const Ran alone = ranOf(plan, options);
  std::string worst;
  EXPECT_EQ(worstDifference(grouped.all, alone.all, worst), 0.0) << worst;
  EXPECT_EQ(grouped.all.gradientNorm, alone.all.gradientNorm);
  EXPECT_EQ(grouped.all.collectives, alone.all.collectives);
  // Launches of a captured step are counted once, when it is captured.
  EXPECT_LE(alone.launches - grouped.launches, savedBy(plan));
  EXPECT_EQ(alone.launches > grouped.launches, savedBy(plan) > 0);
}

class EmulatedGroups : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedGroups, ChangesNoBit) {
  const DrawnRun run(GetParam(), 12);
  SCOPED_TRACE(textOf(run.drawn));
  expectSameBits(compiled(*run.pair->partitioned, run.drawn.config.schedule,
                          run.drawn.microBatches),
                 run.options);
}

INSTANTIATE_TEST_SUITE_P(Families, EmulatedGroups,
                         ::testing::ValuesIn(familiesOf(
                             {"native/tiny-gpt2", "tiny-gptj", "tiny-t5"})));

Plan twoReplicas(const std::vector<std::string> &flags) {
  const TestFolder folder;
  return runtime::readPlanFile(compileTwoReplicas(folder, flags) +
                               "/plan.json");
}

struct Replicas {
  std::vector<std::string> flags;
  StreamOrder pace;
  /// Counts the launches of collectives after the schedule, per rank and step.
  int launches;
};
void PrintTo(const Replicas &replicas, std::ostream *out) {
  for (const std::string &flag : replicas.flags)
    *out << flag << ' ';
}

class EmulatedReplicas : public ::testing::TestWithParam<Replicas> {};

// The model has twenty parameters, some of which are sharded over an inner
// dimension. Their collectives take one or two launches in all.
TEST_P(EmulatedReplicas, GroupTheCollectivesOfAllParameters) {
  const Plan plan = twoReplicas(GetParam().flags);
  const runtime::Stage &stage = plan.stages.front();
  std::set<int> update; // programs
  for (const auto *entries : {&stage.reduce, &stage.apply})
    for (const runtime::ScheduleEntry &entry : *entries)
      update.insert(entry.program);
  std::ptrdiff_t launches = 0;
  for (const int program : update)
    launches +=
        std::ranges::count_if(
            stage.programs[program].instructions,
            [](const runtime::Instruction &one) {
              return std::holds_alternative<runtime::Collective>(one.what);
            }) -
        savedBy(stage.programs[program]);
  EXPECT_EQ(launches, GetParam().launches);
  emulator::setStreamOrder(GetParam().pace);
  expectSameBits(plan, {});
  emulator::setStreamOrder(StreamOrder::first);
}

INSTANTIATE_TEST_SUITE_P(
    Zero, EmulatedReplicas,
    ::testing::Values(
        Replicas{{"--zero", "0"}, StreamOrder::first, 1},
        Replicas{{"--zero", "1"}, StreamOrder::last, 2},
        Replicas{{"--zero", "1", "--precision", "bf16"}, StreamOrder::asked, 2},
        Replicas{{"--zero", "2"}, StreamOrder::last, 2},
        Replicas{{"--zero", "3"}, StreamOrder::asked, 1}));

// An evaluation all-reduces only the loss, although the plan groups this call
// with others.
TEST(EmulatedEvaluation, MakesNoCallsButItsOwn) {
  const Plan plan = twoReplicas({"--zero", "1"});
  const auto evaluated = [&](bool isTrained) {
    std::vector<std::map<std::string, double>> losses(plan.ranks);
    emulator::setDevices(plan.ranks);
    ranksOnDevices = 0;
    runtime::runOnThreads(plan.ranks, {}, [&](runtime::World &world) {
      const auto backend = makeOnOwnDevice();
      runtime::RankExecutor rank(plan, world, *backend);
      rank.initialise([](const runtime::Parameter &, int,
                         const runtime::TensorView &piece, double *values) {
        for (std::int64_t i = 0; i < piece.elements(); ++i)
          values[i] = 0.01 * static_cast<double>(i % 17);
      });
      runtime::DrawnData data = runtime::drawnDataOf(plan, 1, 1);
      runtime::StepInput input;
      input.data = &data;
      input.update.learningRate = 1e-3;
      if (isTrained)
        rank.step(input);
      for (int times = 0; times < 3; ++times)
        losses[world.rank()] = rank.evaluate(input);
    });
    emulator::setDevices(1);
    EXPECT_EQ(losses[0], losses[1]);
    return losses[0].at("loss");
  };
  for (const bool isTrained : {false, true}) {
    emulator::takeNcclLaunches();
    const double loss = evaluated(isTrained);
    const int launches = emulator::takeNcclLaunches();
    EXPECT_GT(loss, 1.0);
    const Ungrouped ungrouped;
    EXPECT_EQ(evaluated(isTrained), loss);
    EXPECT_LE(launches, emulator::takeNcclLaunches());
  }
}

// The trace gives the first call of a group the time of the group, and the
// other calls 0 s.
TEST(EmulatedTrace, HasAllCallsOfAGroup) {
  const Plan plan = twoReplicas({"--zero", "1"});
  const runtime::Stage &stage = plan.stages.front();
  std::vector<std::vector<runtime::InstructionRun>> traces(plan.ranks);
  emulator::setDevices(plan.ranks);
  ranksOnDevices = 0;
  runtime::runOnThreads(plan.ranks, {}, [&](runtime::World &world) {
    const auto backend = makeOnOwnDevice();
    runtime::RankExecutor rank(plan, world, *backend);
    runtime::DrawnData data = runtime::drawnDataOf(plan, 1, 1);
    runtime::StepInput input;
    input.data = &data;
    input.isTimed = true;
    input.trace = &traces[world.rank()];
    rank.step(input);
  });
  emulator::setDevices(1);
  std::map<std::pair<int, int>, int> expected; // by program and instruction
  for (auto entries : {&runtime::Stage::schedule, &runtime::Stage::reduce,
                       &runtime::Stage::apply})
    for (const runtime::ScheduleEntry &entry : stage.*entries)
      for (int i = 0;
           i < std::ssize(stage.programs[entry.program].instructions); ++i)
        expected[{entry.program, i}] += entry.count;
  EXPECT_GT(savedBy(plan), 0);
  for (const auto &trace : traces) {
    std::map<std::pair<int, int>, int> seen;
    for (const runtime::InstructionRun &run : trace)
      ++seen[{run.program, run.instruction}];
    EXPECT_EQ(seen, expected);
  }
}

} // namespace
} // namespace mtplan::passes
