//===- device_ranks_test.cpp - Runs with a device per rank ----------------===//
//
// Runs plans that register memory with NCCL (MTPLAN_NCCL_REGISTER), and a plan
// whose ranks have different kinds of devices.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/test_helpers.h"
#include "tests/emulator/nccl.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/runs/small_plan.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_process.h"

namespace mtplan::passes {
namespace {

using runtime::Plan;
using ::testing::HasSubstr;

/// While an object exists, runs of this process register memory with NCCL.
class Registering : ScopedVariable {
public:
  Registering() : ScopedVariable("MTPLAN_NCCL_REGISTER", "1") {}
};

/// Returns the expected use of registered memory. The gradient norm's
/// all-reduce uses no arena. Groups across stages use arenas that are not
/// registered with their communicators. All-to-alls, which are sends and
/// receives, use no arenas.
emulator::NcclUse useOf(const Plan &plan) {
  emulator::NcclUse use;
  use.plain = plan.ranks;
  for (const runtime::Stage &stage : plan.stages) {
    std::set<int> called;
    for (const runtime::Program &program : stage.programs)
      for (const runtime::Instruction &instruction : program.instructions)
        if (const auto *call =
                std::get_if<runtime::Collective>(&instruction.what);
            call && call->kind != runtime::CollectiveKind::allToAll)
          called.insert(call->group);
    for (const int group : called)
      for (const std::vector<int> &ranks : plan.groups[group].communicators) {
        const auto ours = std::ranges::count_if(ranks, [&](int rank) {
          return std::ranges::find(stage.ranks, rank) != stage.ranks.end();
        });
        (ours == std::ssize(ranks) ? use.registered : use.plain) +=
            static_cast<int>(ours);
      }
  }
  return use;
}

/// Runs a random plan of a family with one device per rank, over NCCL.
class EmulatedRegistration : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedRegistration, CoversAllCollectivesAndChangesNoBit) {
  const DrawnRun run(GetParam(), 12);
  SCOPED_TRACE(textOf(run.drawn));
  const Plan plan = compiled(*run.pair->partitioned, run.drawn.config.schedule,
                             run.drawn.microBatches);
  emulator::setDevices(plan.ranks);
  const auto ran = [&] {
    ranksOnDevices = 0;
    return runPlan(plan, run.options, makeOnOwnDevice, 1e-10, 3);
  };
  const Gathered plain = ran();
  emulator::takeNcclUse();
  const Registering registering;
  const Gathered registered = ran();
  emulator::setDevices(1);
  std::string worst;
  EXPECT_EQ(worstDifference(registered, plain, worst), 0.0) << worst;
  EXPECT_EQ(registered.gradientNorm, plain.gradientNorm);
  EXPECT_EQ(emulator::takeNcclUse(), useOf(plan));
  EXPECT_THAT(emulator::takeNcclMisuses(), ::testing::IsEmpty());
  EXPECT_EQ(emulator::ncclAllocations(), 0);
}

// The random plans of these families have groups within and across stages, ZeRO
// with all parameters sharded, and all-to-alls.
INSTANTIATE_TEST_SUITE_P(Families, EmulatedRegistration,
                         ::testing::ValuesIn(familiesOf({"native/tiny-gpt2",
                                                         "tiny-gptj", "tiny-t5",
                                                         "tiny-vit"})));

// Rank 0 reports once how much memory the registration takes.
TEST(EmulatedMemory, IsRegisteredIfRequested) {
  const TestFolder folder;
  const std::string plan = compileTwoReplicas(folder, {"--precision", "fp32"});
  emulator::setDevices(2);
  const Registering registering;
  unsetenv("CUDA_MODULE_LOADING");
  const Ran ran = runHere({plan, "--data", kText, "--backend", "cuda",
                           "--ranks-as", "threads", "--steps", "1"});
  emulator::setDevices(1);
  ASSERT_EQ(ran.code, 0) << ran.err;
  // Ranks that wait for each other load kernels eagerly.
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  unsetenv("CUDA_MODULE_LOADING");
  // The gradients and the buffers in transit take 2 MiB each.
  const std::string said =
      "\nrank 0: memory registered with NCCL takes 4.00 MiB of the GPU for ";
  EXPECT_THAT(ran.out, HasSubstr(said));
  EXPECT_EQ(ran.out.find(said), ran.out.rfind(said));
  EXPECT_THAT(emulator::takeNcclMisuses(), ::testing::IsEmpty());
}

TEST(UnlikeDevices, CauseOneWarning) {
  const TestFolder folder;
  const std::string plan = compileTwoReplicas(folder, {"--precision", "fp32"});
  const auto trained = [&] {
    return runHere({plan, "--data", kText, "--backend", "cuda", "--ranks-as",
                    "threads", "--steps", "1"});
  };
  emulator::setDevices(2);
  const Ran alike = trained();
  emulator::nameDevices({"older", "newer"});
  const Ran unlike = trained();
  emulator::nameDevices({});
  emulator::setDevices(1);
  ASSERT_EQ(alike.code, 0) << alike.err;
  EXPECT_THAT(alike.err, ::testing::IsEmpty());
  ASSERT_EQ(unlike.code, 0) << unlike.err;
  const std::string said = "warning: rank 1 has another device or other "
                           "libraries than rank 0 (rank 0: older; CUDA ";
  EXPECT_THAT(unlike.err, HasSubstr(said));
  EXPECT_THAT(unlike.err, HasSubstr(", cuBLASLt "));
  EXPECT_EQ(unlike.err.find(said), unlike.err.rfind(said));
}

} // namespace
} // namespace mtplan::passes
