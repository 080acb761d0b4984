//===- launch_test.cpp - Variables of launchers ---------------------------===//
//
// The variables come from the documentation of the launchers, and from
// processes that the launchers started.
//
//===----------------------------------------------------------------------===//

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

using Variables = std::map<std::string, std::string>;

Environment environmentOf(const Variables &variables) {
  return [variables](const std::string &name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty())
      return std::nullopt;
    return found->second;
  };
}

Launch launched(const Variables &variables, MpiBuild mpi = MpiBuild::openMpi) {
  return readLaunch(environmentOf(variables), mpi);
}

std::string refusal(const Variables &variables,
                    MpiBuild mpi = MpiBuild::openMpi) {
  try {
    launched(variables, mpi);
  } catch (const LaunchError &error) {
    return error.what();
  }
  return "not refused";
}

/// Returns `variables` with the values of `more`. An empty value means unset.
Variables with(Variables variables, const Variables &more) {
  for (const auto &[name, value] : more)
    variables[name] = value;
  return variables;
}

// torchrun --standalone --nproc-per-node 4 of PyTorch 2 sets these variables.
const Variables kTorchrun = {{"RANK", "2"},
                             {"GROUP_RANK", "0"},
                             {"ROLE_RANK", "2"},
                             {"ROLE_NAME", "default"},
                             {"LOCAL_RANK", "2"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"WORLD_SIZE", "4"},
                             {"GROUP_WORLD_SIZE", "1"},
                             {"ROLE_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "vm.example.org"},
                             {"MASTER_PORT", "43211"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"},
                             {"TORCHELASTIC_MAX_RESTARTS", "0"},
                             {"TORCHELASTIC_RUN_ID", "6b2c1d"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"OMP_NUM_THREADS", "1"}};
// torchrun --nnodes 2 --nproc-per-node 4 --node-rank 1 sets these variables.
// The agent does not use MASTER_PORT here.
const Variables kTwoNodes =
    with(kTorchrun, {{"RANK", "5"},
                     {"GROUP_RANK", "1"},
                     {"LOCAL_RANK", "1"},
                     {"WORLD_SIZE", "8"},
                     {"MASTER_ADDR", "node1"},
                     {"MASTER_PORT", "29500"},
                     {"TORCHELASTIC_RUN_ID", "none"},
                     {"TORCHELASTIC_USE_AGENT_STORE", "False"}});
// mpirun of Open MPI 4.1 sets these variables. PMIX_NAMESPACE differs in Open
// MPI 5.
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "5"},
                            {"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                            {"OMPI_UNIVERSE_SIZE", "8"},
                            {"PMIX_RANK", "5"},
                            {"PMIX_NAMESPACE", "579928065"}};
// mpiexec of MPICH and of Intel MPI sets these variables.
const Variables kMpich = {{"PMI_RANK", "3"},
                          {"PMI_SIZE", "4"},
                          {"PMI_FD", "9"},
                          {"MPI_LOCALRANKID", "3"},
                          {"MPI_LOCALNRANKS", "4"}};
// srun -N 2 -n 6 without --mpi sets these variables.
const Variables kSlurm = {{"SLURM_JOB_ID", "1234"},
                          {"SLURM_JOBID", "1234"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_NTASKS", "6"},
                          {"SLURM_NPROCS", "6"},
                          {"SLURM_PROCID", "4"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_NNODES", "2"},
                          {"SLURM_STEP_NUM_NODES", "2"},
                          {"SLURM_STEP_NUM_TASKS", "6"},
                          {"SLURM_STEP_TASKS_PER_NODE", "4,2"},
                          {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                          {"SLURM_JOB_NODELIST", "gpu[07-08]"}};
const Variables kSlurmPmix =
    with(kSlurm, {{"PMIX_RANK", "4"}, {"PMIX_NAMESPACE", "slurm.pmix.1234.0"}});
// srun --mpi=pmi2 sets these variables.
const Variables kSlurmPmi2 = with(
    kSlurm, {{"PMI_RANK", "4"}, {"PMI_SIZE", "6"}, {"PMI_JOBID", "1234.0"}});
// A script that sbatch -n 6 started, or a shell of salloc, has these variables.
// The process is no task of a Slurm step.
const Variables kScript = with(kSlurm, {{"SLURM_PROCID", "0"},
                                        {"SLURM_STEP_ID", ""},
                                        {"SLURM_STEP_NUM_TASKS", ""},
                                        {"SLURM_STEP_TASKS_PER_NODE", ""},
                                        {"SLURM_STEP_NODELIST", ""}});

void expectRank(const Launch &launch, Launcher by, Transport transport,
                int rank, int ranks, std::optional<int> localRank,
                std::optional<int> localRanks) {
  EXPECT_EQ(launch.by, by);
  EXPECT_EQ(launch.transport, transport);
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.ranks, ranks);
  EXPECT_EQ(launch.localRank, localRank);
  EXPECT_EQ(launch.localRanks, localRanks);
  if (transport == Transport::sockets) {
    EXPECT_EQ(launch.start.rank, rank);
    EXPECT_EQ(launch.start.ranks, ranks);
  }
}

TEST(Launch, SingleProcessUsesThreads) {
  for (const Variables &variables :
       {Variables(), kScript, Variables{{"MASTER_ADDR", "node1"}},
        with(kTorchrun, {{"RANK", "0"},
                         {"LOCAL_RANK", "0"},
                         {"WORLD_SIZE", "1"},
                         {"LOCAL_WORLD_SIZE", "1"}}),
        Variables{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}},
        Variables{{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}},
        Variables{{"WORLD_SIZE", "1"}},
        with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})})
    expectRank(launched(variables), Launcher::alone, Transport::threads, 0, 1,
               std::nullopt, std::nullopt);
}

TEST(Launch, Torchrun) {
  const Launch here = launched(kTorchrun);
  expectRank(here, Launcher::torchrun, Transport::sockets, 2, 4, 2, 4);
  EXPECT_TRUE(here.start.oneHost);
  EXPECT_EQ(here.start.host, "127.0.0.1");
  // The agent of torchrun uses MASTER_PORT itself, so the ranks use other
  // ports. A restart of the job has different ports again.
  EXPECT_THAT(here.start.ports, SizeIs(8));
  const Launch again =
      launched(with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  EXPECT_NE(here.start.job, again.start.job);
  EXPECT_NE(here.start.ports, again.start.ports);
  for (const int port : here.start.ports) {
    EXPECT_GE(port, 10000);
    EXPECT_LT(port, 30000);
  }
  EXPECT_EQ(here.start.ports,
            launched(with(kTorchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}}))
                .start.ports);

  const Launch two = launched(kTwoNodes);
  expectRank(two, Launcher::torchrun, Transport::sockets, 5, 8, 1, 4);
  EXPECT_FALSE(two.start.oneHost);
  EXPECT_EQ(two.start.host, "node1");
  EXPECT_THAT(two.start.ports, ElementsAre(29500));

  // A user or a job of Kubernetes sets only these variables.
  const Launch byHand = launched({{"RANK", "1"},
                                  {"WORLD_SIZE", "2"},
                                  {"MASTER_ADDR", "job-0"},
                                  {"MASTER_PORT", "23456"}});
  expectRank(byHand, Launcher::torchrun, Transport::sockets, 1, 2, std::nullopt,
             std::nullopt);
  EXPECT_EQ(byHand.start.host, "job-0");
  EXPECT_THAT(byHand.start.ports, ElementsAre(23456));
}

TEST(Launch, OpenMpi) {
  expectRank(launched(kOpenMpi), Launcher::openMpi, Transport::mpi, 5, 8, 1, 4);
  // A build without MPI, or with another MPI, uses sockets.
  for (const MpiBuild mpi : {MpiBuild::none, MpiBuild::mpich}) {
    const Launch there = launched(with(kOpenMpi, {{"MASTER_ADDR", "h"}}), mpi);
    expectRank(there, Launcher::openMpi, Transport::sockets, 5, 8, 1, 4);
    EXPECT_EQ(there.start.host, "h");
    EXPECT_THAT(there.start.job, HasSubstr("579928065"));
    const Launch here =
        launched(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                                 {"PMIX_NAMESPACE", "prterun-vm-77@1"}}),
                 mpi);
    EXPECT_TRUE(here.start.oneHost);
    EXPECT_THAT(here.start.job, HasSubstr("prterun-vm-77@1"));
    EXPECT_THAT(refusal(kOpenMpi, mpi),
                HasSubstr("4 of 8 ranks are on this host, and nothing says "
                          "where rank 0 is: set MASTER_ADDR"));
  }
}

TEST(Launch, Mpich) {
  expectRank(launched(kMpich, MpiBuild::mpich), Launcher::mpich, Transport::mpi,
             3, 4, 3, 4);
  EXPECT_THAT(refusal(kMpich),
              AllOf(HasSubstr("PMI_RANK=3 and PMI_SIZE=4"),
                    HasSubstr("set MASTER_PORT to a free port")));
  const Launch here = launched(with(kMpich, {{"MASTER_PORT", "23000"}}));
  expectRank(here, Launcher::mpich, Transport::sockets, 3, 4, 3, 4);
  EXPECT_THAT(here.start.ports, ElementsAre(23000));
}

TEST(Launch, Slurm) {
  const Launch plain = launched(kSlurm);
  expectRank(plain, Launcher::slurm, Transport::sockets, 4, 6, 0, 2);
  EXPECT_EQ(plain.start.host, "gpu07");
  EXPECT_FALSE(plain.start.oneHost);
  EXPECT_EQ(plain.start.job, "Slurm's job 1234, step 0");
  EXPECT_THAT(plain.start.ports, SizeIs(8));
  const Launch given = launched(
      with(kSlurm, {{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29500"}}));
  EXPECT_EQ(given.start.host, "10.0.0.7");
  EXPECT_THAT(given.start.ports, ElementsAre(29500));

  expectRank(launched(kSlurmPmix), Launcher::slurm, Transport::mpi, 4, 6, 0, 2);
  expectRank(launched(kSlurmPmix, MpiBuild::none), Launcher::slurm,
             Transport::sockets, 4, 6, 0, 2);
  expectRank(launched(kSlurmPmi2), Launcher::slurm, Transport::sockets, 4, 6, 0,
             2);
  expectRank(launched(kSlurmPmi2, MpiBuild::mpich), Launcher::slurm,
             Transport::mpi, 4, 6, 0, 2);
}

TEST(Launch, TheInnermostLauncherCounts) {
  // srun --ntasks-per-node 1, or mpirun, starts torchrun.
  for (const Variables &outer : {kSlurm, kSlurmPmix, kScript, kOpenMpi})
    expectRank(launched(with(outer, kTwoNodes)), Launcher::torchrun,
               Transport::sockets, 5, 8, 1, 4);
  // mpirun runs in an allocation: its daemons are tasks of a step, one per
  // node.
  for (const Variables &outer :
       {kScript, kSlurm,
        with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "2"},
                      {"SLURM_PROCID", "1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}})})
    expectRank(launched(with(outer, kOpenMpi)), Launcher::openMpi,
               Transport::mpi, 5, 8, 1, 4);
  // mpirun starts one process, within one of several Slurm tasks.
  expectRank(launched(with(kSlurm, {{"OMPI_COMM_WORLD_RANK", "0"},
                                    {"OMPI_COMM_WORLD_SIZE", "1"}})),
             Launcher::alone, Transport::threads, 0, 1, std::nullopt,
             std::nullopt);
  // A shell in each of two Slurm tasks starts four ranks by hand.
  expectRank(launched(with(kSlurm, {{"RANK", "5"},
                                    {"WORLD_SIZE", "8"},
                                    {"MASTER_ADDR", "gpu07"},
                                    {"MASTER_PORT", "29500"}})),
             Launcher::torchrun, Transport::sockets, 5, 8, std::nullopt,
             std::nullopt);
  // Scripts copy the launcher's rank and size to the variables of PyTorch.
  const Variables told = {{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"MASTER_ADDR", "node1"},
                          {"MASTER_PORT", "29500"}};
  expectRank(launched(with(kOpenMpi, told)), Launcher::openMpi, Transport::mpi,
             5, 8, 1, 4);
  expectRank(launched(with(kOpenMpi, told), MpiBuild::none), Launcher::torchrun,
             Transport::sockets, 5, 8, std::nullopt, std::nullopt);
  expectRank(launched(with(kSlurm, {{"WORLD_SIZE", "6"},
                                    {"MASTER_ADDR", "gpu07"},
                                    {"MASTER_PORT", "29500"}})),
             Launcher::slurm, Transport::sockets, 4, 6, 0, 2);
  // torchrun starts one process, which starts mpirun.
  expectRank(
      launched(with(kOpenMpi, with(kTorchrun, {{"RANK", "0"},
                                               {"LOCAL_RANK", "0"},
                                               {"WORLD_SIZE", "1"},
                                               {"LOCAL_WORLD_SIZE", "1"}}))),
      Launcher::openMpi, Transport::mpi, 5, 8, 1, 4);
}

TEST(Launch, ContradictoryVariablesAreRejected) {
  const std::vector<std::pair<Variables, std::string>> refused = {
      {with(kTorchrun, {{"WORLD_SIZE", ""}}),
       "RANK=2 without WORLD_SIZE: the number of ranks is unknown; set both, "
       "or start with torchrun, mpirun or srun"},
      {with(kTorchrun, {{"RANK", ""}}),
       "WORLD_SIZE=4 without RANK: the rank of this process is unknown; "},
      {with(kTorchrun, {{"RANK", "4"}, {"LOCAL_RANK", "3"}}),
       "RANK=4 of WORLD_SIZE=4: the last rank is 3"},
      {with(kTorchrun, {{"RANK", "two"}}),
       "RANK=two: must be a number, 0 or more"},
      {with(kTorchrun, {{"RANK", "-1"}}), "RANK=-1: must be a number"},
      {with(kTorchrun, {{"RANK", "1 "}}), "RANK=1 : must be a number"},
      {with(kTorchrun, {{"RANK", "99999999999"}}), "RANK=99999999999: must be"},
      {with(kTorchrun, {{"WORLD_SIZE", "0"}}),
       "WORLD_SIZE=0: must be a number, 1 or more"},
      {with(kTorchrun, {{"LOCAL_RANK", "4"}}),
       "LOCAL_RANK=4 of LOCAL_WORLD_SIZE=4: the last rank of this host is 3"},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}}),
       "LOCAL_WORLD_SIZE=8 of WORLD_SIZE=4: more ranks on this host than there "
       "are"},
      {with(kTwoNodes, {{"MASTER_ADDR", ""}}),
       "RANK=5 and WORLD_SIZE=8 without MASTER_ADDR: set it to the host of "
       "rank 0"},
      {with(kTwoNodes, {{"MASTER_PORT", ""}}),
       "RANK=5 and WORLD_SIZE=8 without MASTER_PORT: set it to a free port of "
       "node1"},
      {with(kTwoNodes, {{"MASTER_PORT", "70000"}}),
       "MASTER_PORT=70000: must be a number, 1 to 65535"},
      {with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", ""}}),
       "OMPI_COMM_WORLD_RANK=5 without OMPI_COMM_WORLD_SIZE: the number of "
       "ranks is unknown; the launcher sets both"},
      {with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "8"}}),
       "OMPI_COMM_WORLD_RANK=8 of OMPI_COMM_WORLD_SIZE=8: the last rank is 7"},
      {with(kMpich, {{"PMI_RANK", ""}}), "PMI_SIZE=4 without PMI_RANK"},
      {with(kSlurm, {{"SLURM_PROCID", ""}}),
       "SLURM_STEP_NUM_TASKS=6 without SLURM_PROCID"},
      {with(kSlurm, {{"SLURM_LOCALID", "2"}}),
       "SLURM_LOCALID=2 of SLURM_STEP_TASKS_PER_NODE=2"},
      {with(kSlurm, {{"SLURM_STEP_NODELIST", ""}}),
       "2 of 6 ranks are on this host, and nothing says where rank 0 is"},
      {with(kSlurm, {{"SLURM_JOB_ID", ""}, {"SLURM_JOBID", ""}}),
       "nothing distinguishes the run of SLURM_PROCID=4 and "
       "SLURM_STEP_NUM_TASKS=6 from other runs: set MASTER_PORT"},
      {with(kOpenMpi, {{"RANK", "4"}, {"WORLD_SIZE", "8"}}),
       "RANK=4 and WORLD_SIZE=8 against OMPI_COMM_WORLD_RANK=5 and "
       "OMPI_COMM_WORLD_SIZE=8: they must be the same"},
      {with(kOpenMpi, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
       "RANK=1 and WORLD_SIZE=2 against OMPI_COMM_WORLD_RANK=5"},
      {with(kSlurm, {{"WORLD_SIZE", "8"}}),
       "WORLD_SIZE=8 against SLURM_PROCID=4 and SLURM_STEP_NUM_TASKS=6"},
      {{{"PMIX_RANK", "1"}},
       "PMIX_RANK=1: one of several processes, but nothing says of how many"},
  };
  for (const auto &[variables, words] : refused)
    EXPECT_THAT(refusal(variables), HasSubstr(words));
}

TEST(Launch, EachRankHasADevice) {
  const auto refused = [](const Launch &launch, int visible,
                          bool shared = false) -> std::string {
    try {
      return "device " + std::to_string(deviceOf(launch, visible, shared));
    } catch (const LaunchError &error) {
      return error.what();
    }
  };
  const Launch third = launched(kTorchrun); // rank 2 of 4
  EXPECT_EQ(deviceOf(third, 4), 2);
  EXPECT_EQ(deviceOf(third, 8), 2);
  const Launch shown =
      launched(with(kTorchrun, {{"CUDA_VISIBLE_DEVICES", "3"}}));
  EXPECT_EQ(deviceOf(shown, 1), 0);
  EXPECT_EQ(deviceOf(shown, 4), 2);
  EXPECT_EQ(deviceOf(third, 1, true), 0);
  EXPECT_EQ(deviceOf(third, 2, true), 0);
  EXPECT_EQ(deviceOf(third, 3, true), 2);
  // All ranks of a host are rejected, even if one would find a device.
  EXPECT_EQ(refused(third, 3),
            "rank 2 is 2 of 4 ranks on its host, from 0, but sees 3 devices: "
            "start 3 per host, or give each its own with CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(refused(third, 1), HasSubstr("but sees 1 device: start 1"));
  EXPECT_EQ(refused(third, 0), "rank 2 sees no device");
  EXPECT_EQ(refused(third, 0, true), "rank 2 sees no device");
  EXPECT_EQ(deviceOf(launched(kSlurm), 4), 0);
  EXPECT_EQ(deviceOf(launched({}), 4), 0);
  const Launch byHand = launched({{"RANK", "1"},
                                  {"WORLD_SIZE", "2"},
                                  {"MASTER_ADDR", "a"},
                                  {"MASTER_PORT", "1"}});
  EXPECT_EQ(deviceOf(byHand, 1), 0);
  EXPECT_THAT(refused(byHand, 4),
              HasSubstr("rank 1 sees 4 devices, and nothing says which is its "
                        "own: set LOCAL_RANK"));
}

TEST(Launch, RanksShareTheirHost) {
  EXPECT_EQ(ranksOfHost(launched({}), 16), 16); // ranks are threads
  EXPECT_EQ(ranksOfHost(launched(kOpenMpi), 8), 4);
  EXPECT_EQ(ranksOfHost(launched(kSlurm), 6), 2);
  EXPECT_EQ(ranksOfHost(launched(kTwoNodes), 8), 4);
  EXPECT_GE(coresOfRank({}, 1), 1);
  EXPECT_EQ(coresOfRank({}, 100000), 1);
}

TEST(Launch, ListsOfSlurm) {
  for (const auto &[node, tasks] : std::map<int, std::optional<int>>{
           {0, 5}, {2, 5}, {3, 1}, {4, std::nullopt}})
    EXPECT_EQ(tasksOfNode("5(x3),1", node), tasks);
  for (const char *bad : {"", "x", "(x3)", "2(x", "2(x0)", "2(x-1)", ",", "-4"})
    EXPECT_EQ(tasksOfNode(bad, 0), std::nullopt) << bad;
  const std::map<std::string, std::string> firsts = {
      {"gpu[07-08]", "gpu07"},
      {"gpu7", "gpu7"},
      {"a,b", "a"},
      {"gnode[10,20,25-37]", "gnode10"},
      {"r[1-2]n[03-14]-ib", "r1n03-ib"},
      {"a-b[2],c", "a-b2"},
      {"gpu[07-08", ""},
      {"gpu]", ""},
      {"a[[1]]", ""},
      {"", ""}};
  for (const auto &[list, first] : firsts)
    EXPECT_EQ(firstNode(list), first) << list;
}

} // namespace
} // namespace mtplan::runtime
