//===- offload_test.cpp - Optimizers offloaded from emulated GPUs ---------===//
//
// Gradients go to the host and weights come back on streams of their own, and
// the host updates between them: what it does not wait for goes wrong here.
// What comes of it is what the same plan computes without a host.
//
//===----------------------------------------------------------------------===//

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/streams.h"

namespace mtplan::passes {
namespace {

using emulator::Pace;
using runtime::Backend;
using runtime::Plan;
using testing::HasSubstr;

std::atomic<int> ranksMade{0}, hostsMade{0};

/// Ranks take devices by turns.
std::unique_ptr<Backend> makeBesideHost() {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  cudaSetDevice(ranksMade++ % devices);
  return runtime::makeCudaBackendBeside([] {
    ++hostsMade;
    return runtime::makeReferenceBackend();
  });
}

class EmulatedOffload : public ::testing::TestWithParam<Pace> {
protected:
  EmulatedOffload() { emulator::setPace(GetParam()); }
  ~EmulatedOffload() override { emulator::setPace(Pace::first); }
};

// As it was drawn, on one device that ranks share or on one each, and on one
// rank; the second step is recorded, but for the update, the third a replay.
TEST_P(EmulatedOffload, ComputesWhatOneMemoryDoes) {
  constexpr int kSteps = 3;
  // Two replicas of two stages, with ZeRO 1 and with ZeRO 3.
  for (const auto &[example, salt] :
       {std::pair("tiny-llama", 48), {"tiny-gpt2", 33}}) {
    const DrawnRun run(Family{example}, static_cast<std::uint64_t>(salt));
    SCOPED_TRACE(textOf(run.drawn));
    for (bool isAlone : {false, true}) {
      mlir::ModuleOp step =
          isAlone ? *run.pair->logical : *run.pair->partitioned;
      auto planned = [&](bool offloads) {
        mlir::OwningOpRef<mlir::ModuleOp> copy(step.clone());
        return isAlone ? alone(*copy, run.drawn.microBatches, offloads)
                       : compiled(*copy, run.drawn.config.schedule,
                                  run.drawn.microBatches, offloads);
      };
      const Gathered expected =
          runPlan(planned(false), run.options, runtime::makeReferenceBackend,
                  1e-10, kSteps);
      const Plan plan = planned(true);
      const bool shared = salt == 48;
      emulator::setDevices(shared ? 1 : plan.ranks);
      expectSame(runPlan(plan, run.options, makeBesideHost, 1e-10, kSteps),
                 expected);
      emulator::setDevices(1);
    }
  }
}

TEST(EmulatedHost, IsNeededForWhatIsOffloaded) {
  const DrawnRun run(Family{"tiny-gpt2"}, 13);
  const Plan plan = compiled(*run.pair->partitioned, run.drawn.config.schedule,
                             run.drawn.microBatches, true);
  try {
    runPlan(plan, run.options, runtime::makeCudaBackend, 1e-10);
    FAIL() << "ran";
  } catch (const std::runtime_error &error) {
    EXPECT_THAT(error.what(), HasSubstr("is offloaded to the host, but"));
  }
}

// It has threads: where nothing is offloaded there are none.
TEST(EmulatedHost, IsMadeOnlyForWhatIsOffloaded) {
  const DrawnRun run(Family{"tiny-gpt2"}, 13);
  for (bool offloads : {false, true}) {
    hostsMade = 0;
    runPlan(alone(*run.pair->logical, run.drawn.microBatches, offloads),
            run.options, makeBesideHost, 1e-10);
    EXPECT_EQ(hostsMade, offloads ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Paces, EmulatedOffload,
                         testing::Values(Pace::first, Pace::last, Pace::asked));

} // namespace
} // namespace mtplan::passes
