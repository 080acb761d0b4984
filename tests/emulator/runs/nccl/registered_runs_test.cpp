//===- registered_runs_test.cpp - Memory that NCCL reads and writes itself ===//
//
// Whole runs on ranks with a device each, of which a person wants that.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/nccl.h"
#include "tests/emulator/runs/drawn_run.h"
#include "tests/emulator/runs/small_plan.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_process.h"

namespace mtplan::passes {
namespace {

using runtime::Plan;
using ::testing::HasSubstr;

/// Runs of this process register what NCCL reads and writes, while this lives.
class Registering {
public:
  Registering() { setenv("MTPLAN_NCCL_REGISTER", "1", 1); }
  ~Registering() { unsetenv("MTPLAN_NCCL_REGISTER"); }
  Registering(const Registering &) = delete;
  Registering &operator=(const Registering &) = delete;
};

/// What communicators of a plan are to be given, by their ranks' ends. The
/// norm's squares lie in no arena, arenas of other stages are others, and
/// all-to-alls, which are messages, are given no arenas.
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

/// Drawn for these, plans have groups within stages and over them, ZeRO of all
/// parameters, and all-to-alls.
std::vector<Family> quickFamilies() {
  std::vector<Family> quick = families();
  std::erase_if(quick, [](const Family &family) {
    return !std::set<std::string>{"native/tiny-gpt2", "tiny-gptj", "tiny-t5",
                                  "tiny-vit"}
                .contains(family.example);
  });
  return quick;
}

/// A random plan of a family, on ranks with a device each, that NCCL connects.
class EmulatedRegistration : public ::testing::TestWithParam<Family> {};

TEST_P(EmulatedRegistration, IsOfAllThatCollectivesSeeAndChangesNoBit) {
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

INSTANTIATE_TEST_SUITE_P(Families, EmulatedRegistration,
                         ::testing::ValuesIn(quickFamilies()));

// What that takes is said, once.
TEST(EmulatedMemory, IsRegisteredIfAPersonSaysSo) {
  const TestFolder folder;
  const std::string plan = compileTwoReplicas(folder, {"--precision", "fp32"});
  emulator::setDevices(2);
  const Registering registering;
  unsetenv("CUDA_MODULE_LOADING");
  const Ran ran = runHere({plan, "--data", kText, "--backend", "cuda",
                           "--ranks-as", "threads", "--steps", "1"});
  emulator::setDevices(1);
  ASSERT_EQ(ran.code, 0) << ran.err;
  // As of all ranks that wait for each other.
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  unsetenv("CUDA_MODULE_LOADING");
  // Of the gradients, and of what is in transit.
  const std::string said =
      "\nrank 0: memory for NCCL to register takes 4.00 MiB of the GPU for ";
  EXPECT_THAT(ran.out, HasSubstr(said));
  EXPECT_EQ(ran.out.find(said), ran.out.rfind(said));
  EXPECT_THAT(emulator::takeNcclMisuses(), ::testing::IsEmpty());
}

} // namespace
} // namespace mtplan::passes
