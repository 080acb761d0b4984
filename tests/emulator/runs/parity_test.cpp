//===- parity_test.cpp - Plans on emulated GPUs ---------------------------===//
//
// Random plans of every family (drawn_plan.h) on the CUDA backend over the
// emulator: streams, events, the graph of a step and what the host waits for
// are those of a device, and what they leave open goes three ways.
//
//===----------------------------------------------------------------------===//

#include <array>

#include <gtest/gtest.h>

#include "passes/memory/element_type.h"
#include "passes/verify/prove.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/drawn_plan.h"

namespace mtplan::passes {
namespace {

using emulator::Pace;
using runtime::Plan;

// The first is queued, the second recorded, the others replayed.
constexpr int kSteps = 4;

class EmulatedPlan : public ::testing::TestWithParam<Family> {};

void expectSame(const Gathered &ran, const Gathered &expected,
                const char *what) {
  EXPECT_EQ(ran.faults, std::vector<std::string>()) << what;
  std::string worst;
  EXPECT_LE(worstDifference(ran, expected, worst, 1e-3), 1e-10)
      << what << ": " << worst;
  EXPECT_EQ(ran.collectives, expected.collectives) << what;
}

TEST_P(EmulatedPlan, ComputesWhatPlainKernelsDo) {
  Family family = GetParam();
  if (family.layers > 0)
    family.layers = 2;
  const bool hasExperts = family.splits.contains("expert");
  const int layers = planner::layersOf(Step(family, 1, 1).graph);
  Dice dice = diceOf(family, 11);
  const Drawn drawn = draw(dice, hasExperts, layers);
  SCOPED_TRACE(textOf(drawn));
  DrawnStep made(family, drawn);
  std::optional<ProofPair> pair =
      buildProofPair(*made.step.module, *made.planned);
  ASSERT_TRUE(pair);
  for (mlir::ModuleOp step : {*pair->partitioned, *pair->logical})
    setElementType(step, mlir::Float64Type::get(step->getContext()));
  ir::RunOptions options;
  options.seed = drawn.seed;
  options.microBatches = drawn.microBatches;
  options.adam.epsilon = 1e-3; // else near zero it magnifies what is rounding
  const Plan plan = alone(*pair->logical, drawn.microBatches);
  const Gathered expected =
      runPlan(plan, options, runtime::makeReferenceBackend, 0.0, kSteps);
  // Each family one way: all of them see all three.
  const Pace pace = std::array{Pace::first, Pace::last,
                               Pace::asked}[family.example.size() % 3];
  emulator::setPace(pace);
  expectSame(runPlan(plan, options, runtime::makeCudaBackend, 0.0, kSteps),
             expected, "emulated");
  emulator::setPace(Pace::first);
}

INSTANTIATE_TEST_SUITE_P(Families, EmulatedPlan,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
