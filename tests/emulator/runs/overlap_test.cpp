//===- overlap_test.cpp - Overlapped reductions on emulated GPUs ----------===//
//
// Overlapped reductions give the bits of reductions after backward. A hand-made
// plan has one reduction, which the main stream awaits at the end of the
// schedule. Compiled plans reduce a layer's gradients while the previous layer
// runs backward.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "tests/codegen/hand_streams.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_process.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::passes {
namespace {

using emulator::StreamOrder;

constexpr int kSteps = 4; // The second step is recorded, later ones replayed.

Gathered ranAt(StreamOrder pace, const runtime::Plan &plan) {
  emulator::setStreamOrder(pace);
  emulator::setDevices(plan.ranks);
  ranksOnDevices = 0;
  ir::RunOptions options;
  Gathered ran = runPlan(plan, options, makeOnOwnDevice, 0.0, kSteps);
  emulator::setDevices(1);
  emulator::setStreamOrder(StreamOrder::first);
  return ran;
}

void expectAtAnyPace(const runtime::Plan &plan, const Gathered &expected) {
  for (const StreamOrder pace :
       {StreamOrder::first, StreamOrder::last, StreamOrder::asked}) {
    SCOPED_TRACE(static_cast<int>(pace));
    const Gathered ran = ranAt(pace, plan);
    EXPECT_EQ(ran.faults, std::vector<std::string>());
    std::string worst;
    EXPECT_EQ(worstDifference(ran, expected, worst, 1e-3), 0.0) << worst;
    EXPECT_EQ(ran.collectives, expected.collectives);
  }
}

/// Compiles tiny-gpt2 (two layers). Two replicas have two micro-batches.
runtime::Plan compiledPlan(std::vector<std::string> flags) {
  const TestFolder folder;
  const std::string plan = folder / "plan";
  flags.insert(flags.end(), {"--seq", "8"});
  EXPECT_EQ(compileExample("tiny-gpt2", plan, flags), "");
  return runtime::readPlanFile(plan + "/plan.json");
}

class EmulatedOverlaps
    : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(EmulatedOverlaps, ChangeNoBit) {
  std::vector<std::string> flags = GetParam();
  const Gathered expected = ranAt(StreamOrder::first, compiledPlan(flags));
  flags.insert(flags.end(), {"--overlap", "on"});
  const runtime::Plan plan = compiledPlan(flags);
  EXPECT_TRUE(std::ranges::any_of(
      plan.stages[0].programs, [](const runtime::Program &program) {
        return std::ranges::any_of(program.instructions,
                                   &runtime::Instruction::overlapped);
      }));
  expectAtAnyPace(plan, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, EmulatedOverlaps,
    ::testing::Values(
        std::vector<std::string>{"--gpus", "2", "--dp", "2"},
        // With all splits, overlap changes the best strategies and the sums.
        std::vector<std::string>{"--gpus", "4", "--dp", "2", "--tp", "2",
                                 "--splits", "column,row,head,vocab"},
        std::vector<std::string>{"--gpus", "4", "--dp", "2", "--pp", "2"},
        std::vector<std::string>{"--gpus", "4", "--dp", "2", "--cp", "2"},
        std::vector<std::string>{"--gpus", "2", "--dp", "2", "--zero", "1"},
        std::vector<std::string>{"--gpus", "4", "--dp", "4", "--zero", "1",
                                 "--zero-ranks", "2"},
        std::vector<std::string>{"--gpus", "4", "--dp", "2", "--pp", "2",
                                 "--zero", "1"},
        std::vector<std::string>{"--gpus", "4", "--dp", "2", "--cp", "2",
                                 "--zero", "1"}));

TEST(EmulatedOverlap, ChangesNoBit) {
  runtime::Plan plan = runtime::twoReplicas();
  const Gathered expected = ranAt(StreamOrder::first, plan);
  overlapByHand(plan.stages[0], "reduce", "fc.backward");
  writeStreamsAndWaits(plan);
  ASSERT_TRUE(plan.stages[0].reduce.empty());
  expectAtAnyPace(plan, expected);
}

} // namespace
} // namespace mtplan::passes
