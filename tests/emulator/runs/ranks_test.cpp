//===- ranks_test.cpp - Plans of several ranks on emulated GPUs -----------===//
//
// Random plans of every family on as many ranks as they are for: on one device
// that all share, or on a device each, which NCCL connects. What they compute
// is what plain kernels do on the host.
//
//===----------------------------------------------------------------------===//

#include <atomic>

#include <gtest/gtest.h>

#include "passes/memory/element_type.h"
#include "passes/verify/prove.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_plan.h"
#include "tests/passes/drawn_plan.h"

namespace mtplan::passes {
namespace {

using runtime::Backend;
using runtime::Plan;

constexpr int kSteps = 2;

std::atomic<int> ranksMade{0};

/// For the rank of this thread, on a device that no other has.
std::unique_ptr<Backend> makeOnOwnDevice() {
  cudaSetDevice(ranksMade++);
  return runtime::makeCudaBackend();
}

class EmulatedRanks : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedRanks, ComputeWhatPlainKernelsDo) {
  Family family = GetParam();
  if (family.layers > 0)
    family.layers = 2;
  const bool hasExperts = family.splits.contains("expert");
  const int layers = planner::layersOf(Step(family, 1, 1).graph);
  Dice dice = diceOf(family, 12);
  const Drawn drawn = draw(dice, hasExperts, layers);
  SCOPED_TRACE(textOf(drawn));
  DrawnStep made(family, drawn);
  std::optional<ProofPair> pair =
      buildProofPair(*made.step.module, *made.planned);
  ASSERT_TRUE(pair);
  setElementType(*pair->partitioned,
                 mlir::Float64Type::get(pair->partitioned->getContext()));
  ir::RunOptions options;
  options.seed = drawn.seed;
  options.microBatches = drawn.microBatches;
  options.adam.epsilon = 1e-3; // else near zero it magnifies what is rounding
  const Plan plan =
      compiled(*pair->partitioned, drawn.how.schedule, drawn.microBatches);
  const Gathered expected =
      runPlan(plan, options, runtime::makeReferenceBackend, 1e-10, kSteps);
  // Each family one way: all of them see both.
  const bool shared = family.example.size() % 2 == 0;
  emulator::setDevices(shared ? 1 : plan.ranks);
  ranksMade = 0;
  const Gathered ran = runPlan(
      plan, options, shared ? runtime::makeCudaBackend : makeOnOwnDevice, 1e-10,
      kSteps);
  emulator::setDevices(1);
  EXPECT_EQ(ran.faults, std::vector<std::string>());
  std::string worst;
  EXPECT_LE(worstDifference(ran, expected, worst, 1e-3), 1e-10) << worst;
  EXPECT_EQ(ran.collectives, expected.collectives);
}

INSTANTIATE_TEST_SUITE_P(Families, EmulatedRanks,
                         ::testing::ValuesIn(families()));

} // namespace
} // namespace mtplan::passes
