//===- offload_test.cpp - Optimizers offloaded from emulated GPUs ---------===//
//
// Gradients are copied to the host and weights back on separate streams, with
// the host's update in between. A missing wait changes the results, which must
// equal those of the same plan without offload.
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

using emulator::StreamOrder;
using runtime::Backend;
using runtime::Plan;
using testing::HasSubstr;

std::atomic<int> ranksMade{0}, hostsMade{0};

/// Makes a rank's backend. Ranks are assigned to devices in turn.
std::unique_ptr<Backend> makeBesideHost() {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  cudaSetDevice(ranksMade++ % devices);
  return runtime::makeCudaBackendBeside([] {
    ++hostsMade;
    return runtime::makeReferenceBackend();
  });
}

class EmulatedOffload : public ::testing::TestWithParam<StreamOrder> {
protected:
  EmulatedOffload() { emulator::setStreamOrder(GetParam()); }
  ~EmulatedOffload() override { emulator::setStreamOrder(StreamOrder::first); }
};

// Runs a random plan on a shared device or on one per rank, and the same model
// on one rank. The second step is recorded, except its update, and the third
// replayed.
TEST_P(EmulatedOffload, ComputesWhatThePlanWithoutOffloadDoes) {
  constexpr int kSteps = 3;
  // Both plans have two replicas and two stages; one has ZeRO 1, one ZeRO 3.
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

TEST(EmulatedHost, IsRequiredForOffload) {
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

// The host backend starts threads, so it is made only if needed.
TEST(EmulatedHost, IsMadeOnlyForOffload) {
  const DrawnRun run(Family{"tiny-gpt2"}, 13);
  for (bool offloads : {false, true}) {
    hostsMade = 0;
    runPlan(alone(*run.pair->logical, run.drawn.microBatches, offloads),
            run.options, makeBesideHost, 1e-10);
    EXPECT_EQ(hostsMade, offloads ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Paces, EmulatedOffload,
                         testing::Values(StreamOrder::first, StreamOrder::last,
                                         StreamOrder::asked));

} // namespace
} // namespace mtplan::passes
