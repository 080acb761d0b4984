//===- launched_test.cpp - mtrun as torchrun and srun start it ------------===//
//
// Starts processes with the environment variables of torchrun and srun. The
// processes connect over sockets.
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
using testing::UnorderedElementsAre;

using Launched = FaultRuns;

TEST_F(Launched, TorchrunHasTheBitsOfThreads) {
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

TEST_F(Launched, SrunWithoutMpiHasTheBitsOfThreads) {
  const std::string to = place("srun");
  const Ended ended = endOfAll(underSrun(
      2, arguments("two", to, {"--keep", "9", "--metrics", place("metrics")})));
  ASSERT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(numbersOf(place("metrics")),
            numbersOf(undisturbed("two") + "/metrics"));
}

TEST_F(Launched, KilledRankIsNamedByAllOthers) {
  RunProcess run(underTorchrun(4, endless("four", place("killed"))));
  const Ended ended = endOfKilled(run, 1);
  EXPECT_EQ(ended.code, 1);
  for (const int rank : {0, 2, 3})
    EXPECT_THAT(ended.lastMessage(rank),
                AllOf(HasSubstr("rank 1 did not reach "),
                      HasSubstr("its process has closed the connection")))
        << ended.out;
}

TEST_F(Launched, AllRanksSaveAtSigterm) {
  RunProcess run(underTorchrun(4, endless("four", place("ended"))));
  expectSavedWhenToldToEnd(run);
}

TEST_F(Launched, WrongNumberOfRanksIsRejected) {
  const Ended two = endOfAll(underTorchrun(2, arguments("four", place("2"))));
  EXPECT_EQ(two.code, 1); // the exit code of the shell
  EXPECT_THAT(two.lines("error: "),
              UnorderedElementsAre(
                  HasSubstr("rank 0: the plan is for 4 ranks, but 2 were "
                            "started: torchrun --no-python "
                            "--nproc-per-node 4 mtrun "),
                  HasSubstr("rank 1: the plan is for 4 ranks, but 2 were ")));
  std::vector<std::string> alone{"env", "RANK=1", "MASTER_ADDR=localhost"};
  for (const std::string &word : threads("two", place("1")))
    alone.push_back(word);
  const Ended one = endOfAll(alone);
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(
      one.out,
      HasSubstr("RANK=1 without WORLD_SIZE: the number of ranks is unknown"));
}

// Only one of three ranks starts.
TEST_F(Launched, LoneRankFailsWithoutWaiting) {
  const auto ends = [](const std::vector<std::string> &launcher,
                       const std::vector<std::string> &run) {
    std::vector<std::string> command{"env"};
    command.insert(command.end(), launcher.begin(), launcher.end());
    command.insert(command.end(), run.begin(), run.end());
    return endOfAll(command);
  };
  const std::vector<std::string> torchrun{
      "RANK=1", "WORLD_SIZE=3", "MASTER_ADDR=localhost", "MASTER_PORT=29500"},
      srun{"SLURM_PROCID=1",   "SLURM_STEP_NUM_TASKS=3",
           "SLURM_LOCALID=1",  "SLURM_STEP_TASKS_PER_NODE=3",
           "SLURM_STEP_ID=0",  "SLURM_NODEID=0",
           "SLURM_JOB_ID=917", "SLURM_STEP_NODELIST=localhost"},
      mpirun{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3",
             "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=3",
             "MASTER_PORT=29500"};
  for (const auto &[launcher, starts] :
       {std::pair(torchrun, "torchrun --no-python --nproc-per-node 4 "),
        std::pair(srun, "srun -n 4 "), std::pair(mpirun, "mpirun -np 4 ")}) {
    const Ended ended = ends(launcher, threads("four", place("few")));
    EXPECT_EQ(ended.code, 2) << ended.out;
    EXPECT_THAT(ended.lines("error: "),
                ElementsAre(HasSubstr("rank 1: the plan is for 4 ranks, but 3 "
                                      "were started: " +
                                      std::string(starts) + "mtrun ")));
    const Ended measured = ends(launcher, {MTPLAN_MTRUN, "calibrate", "--ranks",
                                           "2", "-o", place("machine.json")});
    EXPECT_EQ(measured.code, 2) << measured.out;
    EXPECT_THAT(measured.lines("error: "),
                ElementsAre("--ranks 2: but 3 processes were started"));
  }
}

// CUDA reads its environment variables once, when it is initialised, and MPI
// may initialise CUDA.
TEST_F(Launched, CudaVariablesAreSetBeforeMpiInit) {
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
