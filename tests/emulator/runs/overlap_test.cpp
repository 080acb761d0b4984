//===- overlap_test.cpp - What runs beside later runs, on emulated GPUs ---===//
//
// Two replicas whose only sum over both is overlapped: nothing but the end of
// the schedule joins its stream.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "codegen/overlapped_reduces.h"
#include "codegen/streams.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/streams.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::passes {
namespace {

using emulator::Pace;

constexpr int kSteps = 4; // what is recorded in the second is replayed

Gathered ranAt(Pace pace, const runtime::Plan &plan) {
  emulator::setPace(pace);
  emulator::setDevices(plan.ranks);
  ranksOnDevices = 0;
  ir::RunOptions options;
  Gathered ran = runPlan(plan, options, makeOnOwnDevice, 0.0, kSteps);
  emulator::setDevices(1);
  emulator::setPace(Pace::first);
  return ran;
}

TEST(EmulatedOverlap, ChangesNoBit) {
  runtime::Plan plan = runtime::twoReplicas();
  const Gathered expected = ranAt(Pace::first, plan);
  codegen::overlapReduces(plan);
  codegen::assignStreams(plan);
  ASSERT_TRUE(plan.stages[0].reduce.empty());
  for (const Pace pace : {Pace::first, Pace::last, Pace::asked}) {
    SCOPED_TRACE(static_cast<int>(pace));
    const Gathered ran = ranAt(pace, plan);
    EXPECT_EQ(ran.faults, std::vector<std::string>());
    std::string worst;
    EXPECT_EQ(worstDifference(ran, expected, worst, 1e-3), 0.0) << worst;
    EXPECT_EQ(ran.collectives, expected.collectives);
  }
}

} // namespace
} // namespace mtplan::passes
