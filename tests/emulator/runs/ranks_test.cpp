//===- ranks_test.cpp - Random plans on several emulated GPUs -------------===//
//
// Runs random plans of every family on all their ranks, which share one device
// or have one each, connected by NCCL. The results equal those of plain kernels
// on the host.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/streams.h"

namespace mtplan::passes {
namespace {

using runtime::Plan;

constexpr int kSteps = 4; // later steps replay the graphs of the second

class EmulatedRanks : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedRanks, ComputeWhatPlainKernelsDo) {
  const DrawnRun run(GetParam(), 12);
  SCOPED_TRACE(textOf(run.drawn));
  const Plan plan =
      compiled(*run.pair->partitioned, run.drawn.config.schedule,
               run.drawn.microBatches, false, run.drawn.seed % 2 == 0);
  const Gathered expected =
      runPlan(plan, run.options, runtime::makeReferenceBackend, 1e-10, kSteps);
  // Each family runs on one shared device or on one device per rank. The
  // families together cover both cases.
  const bool shared = run.family.example.size() % 2 == 0;
  emulator::setDevices(shared ? 1 : plan.ranks);
  ranksOnDevices = 0;
  const int before = emulator::graphLaunches();
  const Gathered ran = runPlan(
      plan, run.options, shared ? runtime::makeCudaBackend : makeOnOwnDevice,
      1e-10, kSteps);
  emulator::setDevices(1);
  expectSame(ran, expected);
  // Ranks that share a device communicate through the host, which no graph can
  // record.
  EXPECT_EQ(emulator::graphLaunches() - before,
            shared && plan.ranks > 1 ? 0 : 2 * (kSteps - 1) * plan.ranks);
}

INSTANTIATE_TEST_SUITE_P(Families, EmulatedRanks,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
