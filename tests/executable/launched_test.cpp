//===- launched_test.cpp - mtrun as torchrun and srun start it ------------===//
//
// Processes with the variables of those launchers, which meet over sockets.
//
//===----------------------------------------------------------------------===//

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Launched = FaultRuns;

TEST_F(Launched, ByTorchrunItGivesTheBitsOfThreads) {
  const std::string to = place("torchrun");
  const Ended ended = endOfAll(underTorchrun(
      4,
      arguments("four", to, {"--keep", "9", "--metrics", place("metrics")})));
  ASSERT_EQ(ended.code, 0) << ended.out;
  std::filesystem::rename(place("metrics"), to + "/metrics");
  const std::string threads = undisturbed("four");
  EXPECT_EQ(numbersOf(to + "/metrics"), numbersOf(threads + "/metrics"));
  for (const auto &entry : std::filesystem::directory_iterator(to))
    if (entry.is_directory()) {
      const auto twin =
          std::filesystem::path(threads) / entry.path().filename();
      EXPECT_THAT(differing(entry.path(), twin), IsEmpty());
    }
  EXPECT_EQ(namesIn(to), namesIn(threads));
}

TEST_F(Launched, BySrunWithoutMpiItGivesTheBitsOfThreads) {
  const std::string to = place("srun");
  const Ended ended = endOfAll(underSrun(
      2, arguments("two", to, {"--keep", "9", "--metrics", place("metrics")})));
  ASSERT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(numbersOf(place("metrics")),
            numbersOf(undisturbed("two") + "/metrics"));
}

TEST_F(Launched, AKilledRankIsNamedAtOnceByAllOthers) {
  RunProcess run(underTorchrun(4, endless("four", place("killed"))));
  const Ended ended = endOfKilled(run, 1);
  EXPECT_EQ(ended.code, 1);
  for (const int rank : {0, 2, 3})
    EXPECT_THAT(ended.said(rank),
                AllOf(HasSubstr("rank 1 did not come to "),
                      HasSubstr("its process has closed the connection")))
        << ended.out;
}

TEST_F(Launched, AllSaveWhenTheyAreToldToEnd) {
  RunProcess run(underTorchrun(4, endless("four", place("ended"))));
  expectSavedWhenToldToEnd(run);
}

TEST_F(Launched, RanksThatDoNotFitAreRefused) {
  const Ended two = endOfAll(underTorchrun(2, arguments("four", place("2"))));
  EXPECT_EQ(two.code, 1);
  EXPECT_THAT(two.said(0), HasSubstr("the plan is for 4 ranks, but 2 were "
                                     "started"));
  std::vector<std::string> alone{"env", "RANK=1", "MASTER_ADDR=localhost"};
  for (const std::string &word : threads("two", place("1")))
    alone.push_back(word);
  const Ended one = endOfAll(alone);
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.out, HasSubstr("RANK=1 without WORLD_SIZE: of how many?"));
}

// It may start CUDA, which reads them once.
TEST_F(Launched, MpiFindsWhatCudaIsToReadInTheEnvironment) {
  if (std::string(MTPLAN_MPI_SHIM).empty())
    GTEST_SKIP() << "built without CUDA or MPI, or with sanitizers";
  std::vector<std::string> train = arguments("two", place("ready"));
  train.insert(train.end(), {"--backend", "cuda"});
  const std::vector<std::string> calibrate{
      "calibrate", "--backend",          "cuda", "--like", "A100-SXM4-80GB",
      "-o",        place("machine.json")};
  for (const std::vector<std::string> &run : {train, calibrate}) {
    std::vector<std::string> command{"env", "--unset=CUDA_MODULE_LOADING",
                                     "--unset=CUDA_DEVICE_MAX_CONNECTIONS",
                                     std::string("LD_PRELOAD=") +
                                         MTPLAN_MPI_SHIM};
    const std::vector<std::string> ranks = underMpi(2, run);
    if (ranks.empty())
      GTEST_SKIP() << "no mpirun";
    command.insert(command.end(), ranks.begin(), ranks.end());
    EXPECT_THAT(endOfAll(command).lines("MPI starts with "),
                ElementsAre("CUDA_MODULE_LOADING=EAGER "
                            "CUDA_DEVICE_MAX_CONNECTIONS=32",
                            "CUDA_MODULE_LOADING=EAGER "
                            "CUDA_DEVICE_MAX_CONNECTIONS=32"));
  }
}

} // namespace
} // namespace mtplan
