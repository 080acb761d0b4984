//===- parity_test.cpp - Random plans on one emulated GPU -----------------===//
//
// Runs random plans of every family (drawn_plan.h) on the CUDA backend over the
// emulator, with streams, events and graphs. Work runs in the three orders of
// StreamOrder.
//
//===----------------------------------------------------------------------===//

#include <array>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/streams.h"

namespace mtplan::passes {
namespace {

using emulator::StreamOrder;
using runtime::Plan;

// The first step is queued, the second recorded, the others replayed.
constexpr int kSteps = 4;

class EmulatedPlan : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedPlan, ComputesWhatPlainKernelsDo) {
  const DrawnRun run(GetParam(), 11);
  SCOPED_TRACE(textOf(run.drawn));
  const Plan plan = alone(*run.pair->logical, run.drawn.microBatches);
  const Gathered expected =
      runPlan(plan, run.options, runtime::makeReferenceBackend, 0.0, kSteps);
  // Each family runs in one order; the families together cover all three.
  const StreamOrder pace =
      std::array{StreamOrder::first, StreamOrder::last,
                 StreamOrder::asked}[run.family.example.size() % 3];
  emulator::setStreamOrder(pace);
  expectSame(runPlan(plan, run.options, runtime::makeCudaBackend, 0.0, kSteps),
             expected);
  emulator::setStreamOrder(StreamOrder::first);
}

INSTANTIATE_TEST_SUITE_P(Families, EmulatedPlan,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
