//===- parity_test.cpp - Plans on emulated GPUs ---------------------------===//
//
// Random plans of every family (drawn_plan.h) on the CUDA backend over the
// emulator: streams, events, the graph of a step and what the host waits for
// are those of a device, and what they leave open goes three ways.
//
//===----------------------------------------------------------------------===//

#include <array>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/streams.h"

namespace mtplan::passes {
namespace {

using emulator::Pace;
using runtime::Plan;

// The first is queued, the second recorded, the others replayed.
constexpr int kSteps = 4;

class EmulatedPlan : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedPlan, ComputesWhatPlainKernelsDo) {
  const DrawnRun run(GetParam(), 11);
  SCOPED_TRACE(textOf(run.drawn));
  const Plan plan = alone(*run.pair->logical, run.drawn.microBatches);
  const Gathered expected =
      runPlan(plan, run.options, runtime::makeReferenceBackend, 0.0, kSteps);
  // Each family one way: all of them see all three.
  const Pace pace = std::array{Pace::first, Pace::last,
                               Pace::asked}[run.family.example.size() % 3];
  emulator::setPace(pace);
  expectSame(runPlan(plan, run.options, runtime::makeCudaBackend, 0.0, kSteps),
             expected);
  emulator::setPace(Pace::first);
}

INSTANTIATE_TEST_SUITE_P(Families, EmulatedPlan,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
