//===- launch.cpp - The launcher's environment variables ------------------===//

#include "runtime/communicator/launch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace mtplan::runtime {
namespace {

constexpr int kMost = std::numeric_limits<int>::max();

std::string text(int number) { return std::to_string(number); }

int numberAt(const std::string &list, std::size_t at) {
  int number = 0;
  std::from_chars(list.data() + at, list.data() + list.size(), number);
  return number;
}

/// Holds the rank that one launcher's variables give to this process.
struct Claim {
  Launcher by = Launcher::alone;
  std::string rankName, ranksName; ///< names of the variables
  int rank = 0, ranks = 1;
  std::optional<int> localRank, localRanks;

  /// Formats rank and ranks: RANK=2 and WORLD_SIZE=4
  std::string words() const {
    return rankName + '=' + text(rank) + " and " + ranksName + '=' +
           text(ranks);
  }
};

class Reader {
public:
  explicit Reader(const Environment &theEnvironment)
      : environment(theEnvironment) {}

  bool has(const std::string &name) const {
    return environment(name).has_value();
  }

  std::string word(const std::string &name) const {
    return environment(name).value_or("");
  }

  std::optional<int> number(const std::string &name, int least,
                            int most) const {
    const std::optional<std::string> value = environment(name);
    if (!value)
      return std::nullopt;
    int found = 0;
    const char *const end = value->data() + value->size();
    const auto read = std::from_chars(value->data(), end, found);
    if (read.ec != std::errc() || read.ptr != end || found < least ||
        found > most)
      throw LaunchError(name + '=' + *value + ": must be a number, " +
                        text(least) +
                        (most == kMost ? " or more" : " to " + text(most)));
    return found;
  }

  /// Reads the variables of a launcher. Returns none if the rank is not set,
  /// and the size is not set or 1. Otherwise throws LaunchError if only one of
  /// the two is set, or if a value is invalid.
  std::optional<Claim> claim(Launcher by, const std::string &rankName,
                             const std::string &ranksName,
                             const std::string &localRankName,
                             const std::string &localRanksName) const {
    const std::optional<int> rank = number(rankName, 0, kMost);
    const std::optional<int> ranks = number(ranksName, 1, kMost);
    if (!rank && ranks.value_or(1) == 1)
      return std::nullopt;
    if (!rank)
      throw LaunchError(ranksName + '=' + text(*ranks) + " without " +
                        rankName + ": the rank of this process is unknown; " +
                        remedy(by));
    if (!ranks)
      throw LaunchError(rankName + '=' + text(*rank) + " without " + ranksName +
                        ": the number of ranks is unknown; " + remedy(by));
    if (*rank >= *ranks)
      throw LaunchError(rankName + '=' + text(*rank) + " of " + ranksName +
                        '=' + text(*ranks) + ": the last rank is " +
                        text(*ranks - 1));
    Claim claim = {by, rankName, ranksName, *rank, *ranks, {}, {}};
    claim.localRanks = number(localRanksName, 1, kMost);
    claim.localRank = number(localRankName, 0, kMost);
    checkLocal(claim, localRankName, localRanksName);
    return claim;
  }

  static void checkLocal(const Claim &claim, const std::string &rankName,
                         const std::string &ranksName) {
    if (claim.localRanks && *claim.localRanks > claim.ranks)
      throw LaunchError(ranksName + '=' + text(*claim.localRanks) + " of " +
                        claim.ranksName + '=' + text(claim.ranks) +
                        ": more ranks on this host than there are");
    if (claim.localRank &&
        *claim.localRank >= claim.localRanks.value_or(claim.ranks))
      throw LaunchError(rankName + '=' + text(*claim.localRank) + " of " +
                        (claim.localRanks ? ranksName : claim.ranksName) + '=' +
                        text(claim.localRanks.value_or(claim.ranks)) +
                        ": the last rank of this host is " +
                        text(claim.localRanks.value_or(claim.ranks) - 1));
  }

private:
  static std::string remedy(Launcher by) {
    return by == Launcher::torchrun
               ? "set both, or start with torchrun, mpirun or srun"
               : "the launcher sets both; do not unset one";
  }

  const Environment &environment;
};

std::optional<Claim> slurmClaim(const Reader &read) {
  // SLURM_PROCID is also set in the script that calls srun;
  // SLURM_STEP_NUM_TASKS is set only in tasks of srun.
  if (read.number("SLURM_STEP_NUM_TASKS", 1, kMost).value_or(1) == 1)
    return std::nullopt;
  std::optional<Claim> claim =
      read.claim(Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                 "SLURM_LOCALID", "");
  claim->localRanks =
      tasksOfNode(read.word("SLURM_STEP_TASKS_PER_NODE"),
                  read.number("SLURM_NODEID", 0, kMost).value_or(0));
  Reader::checkLocal(*claim, "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE");
  return claim;
}

/// Returns the claim of MPI's launcher or Slurm, whichever is innermost.
std::optional<Claim> outerClaim(const Reader &read) {
  if (auto claim = read.claim(
          Launcher::openMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"))
    return claim;
  auto slurm = slurmClaim(read);
  // srun --mpi=pmi2 also sets the PMI variables, but Slurm's own variables say
  // more.
  auto claim = read.claim(Launcher::mpich, "PMI_RANK", "PMI_SIZE",
                          "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  if (!claim || (slurm && slurm->ranks == claim->ranks))
    return slurm;
  return claim;
}

/// Returns whether RANK and WORLD_SIZE determine the rank, instead of `outer`.
bool isInner(const Claim &torch, const std::optional<Claim> &outer,
             bool outerHasMpi, const Reader &read) {
  if (!outer || outer->ranks == 1)
    return true;
  if (torch.ranks == 1)
    return false;
  if (read.has("TORCHELASTIC_RUN_ID") || torch.ranks > outer->ranks)
    return true;
  if (torch.ranks == outer->ranks && torch.rank == outer->rank)
    return !outerHasMpi; // MPI needs no MASTER_ADDR
  throw LaunchError(torch.words() + " against " + outer->words() +
                    ": they must be the same; take RANK and WORLD_SIZE out of "
                    "the environment");
}

std::optional<Claim> torchClaim(const Reader &read,
                                const std::optional<Claim> &outer) {
  const bool both = read.has("RANK") && read.has("WORLD_SIZE");
  if (both || !outer || outer->ranks == 1)
    return read.claim(Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK",
                      "LOCAL_WORLD_SIZE");
  // Scripts for srun often set WORLD_SIZE without RANK.
  const int ranks = read.number("WORLD_SIZE", 1, kMost).value_or(outer->ranks);
  if (ranks != outer->ranks)
    throw LaunchError("WORLD_SIZE=" + text(ranks) + " against " +
                      outer->words() + ": they must be the same");
  return std::nullopt;
}

bool usesMpi(const Claim &claim, MpiBuild mpi, const Reader &read) {
  switch (claim.by) {
  case Launcher::openMpi:
    return mpi == MpiBuild::openMpi;
  case Launcher::mpich:
    return mpi == MpiBuild::mpich;
  case Launcher::slurm: // depends on srun's --mpi
    return (mpi == MpiBuild::openMpi && read.has("PMIX_RANK")) ||
           (mpi == MpiBuild::mpich && read.has("PMI_RANK"));
  case Launcher::alone:
  case Launcher::torchrun:
    break;
  }
  return false;
}

/// Returns a text that identifies this run, or "" if only the run's port
/// identifies it.
std::string jobOf(const Claim &claim, const Reader &read) {
  switch (claim.by) {
  case Launcher::torchrun:
    if (read.has("TORCHELASTIC_RUN_ID"))
      return "torchrun's job " + read.word("TORCHELASTIC_RUN_ID") +
             " at port " + read.word("MASTER_PORT") + ", start " +
             read.word("TORCHELASTIC_RESTART_COUNT");
    break;
  case Launcher::slurm: {
    const std::string job = read.has("SLURM_JOB_ID") ? read.word("SLURM_JOB_ID")
                                                     : read.word("SLURM_JOBID");
    const std::string step = read.has("SLURM_STEP_ID")
                                 ? read.word("SLURM_STEP_ID")
                                 : read.word("SLURM_STEPID");
    if (!job.empty() && !step.empty())
      return "Slurm's job " + job + ", step " + step;
    break;
  }
  case Launcher::openMpi:
    if (read.has("PMIX_NAMESPACE"))
      return "Open MPI's job " + read.word("PMIX_NAMESPACE");
    break;
  case Launcher::mpich:
    if (read.has("PMI_JOBID"))
      return "MPI's job " + read.word("PMI_JOBID");
    break;
  case Launcher::alone:
    break;
  }
  return {};
}

/// Returns ports below the ephemeral range, for a run without MASTER_PORT.
std::vector<int> portsFor(const std::string &job) {
  constexpr int kFirst = 10000, kCount = 20000, kTried = 8;
  std::vector<int> ports(kTried);
  for (int i = 0; i < kTried; ++i)
    ports[i] =
        kFirst + static_cast<int>(keyOf(job + '#' + text(i))[0] % kCount);
  return ports;
}

TcpStart startOf(const Claim &claim, const Reader &read) {
  TcpStart start;
  start.rank = claim.rank;
  start.ranks = claim.ranks;
  start.oneHost = claim.localRanks == claim.ranks;

  start.host = read.word("MASTER_ADDR");
  if (claim.by == Launcher::torchrun && start.host.empty())
    throw LaunchError(claim.words() + " without MASTER_ADDR: set it to the "
                                      "host of rank 0");
  if (start.oneHost)
    start.host = "127.0.0.1";
  else if (start.host.empty())
    start.host = firstNode(read.word("SLURM_STEP_NODELIST"));
  if (start.host.empty())
    throw LaunchError((claim.localRanks
                           ? text(*claim.localRanks) + " of " +
                                 text(claim.ranks) +
                                 " ranks are on this host, and nothing"
                           : "nothing") +
                      " says where rank 0 is: set MASTER_ADDR to its host");

  const std::optional<int> port = read.number("MASTER_PORT", 1, 65535);
  if (claim.by == Launcher::torchrun && !port)
    throw LaunchError(claim.words() +
                      " without MASTER_PORT: set it to a free "
                      "port of " +
                      read.word("MASTER_ADDR"));
  const std::string job = jobOf(claim, read);
  // torchrun's agent may itself listen at MASTER_PORT.
  const bool isTaken = read.word("TORCHELASTIC_USE_AGENT_STORE") == "True" &&
                       claim.by == Launcher::torchrun;
  if (port && !isTaken)
    start.ports = {*port};
  else if (job.empty())
    throw LaunchError("nothing distinguishes the run of " + claim.words() +
                      " from other runs: set MASTER_PORT to a free port of " +
                      start.host + ", the same for all its ranks");
  else
    start.ports = portsFor(job);
  start.job =
      job.empty() ? "the ranks that rendezvous at port " + text(*port) : job;
  return start;
}

} // namespace

Environment ownEnvironment() {
  return [](const std::string &name) -> std::optional<std::string> {
    const char *const value = std::getenv(name.c_str()); // NOLINT: at the start
    if (!value || *value == '\0')
      return std::nullopt;
    return value;
  };
}

Launch readLaunch(const Environment &environment, MpiBuild mpi) {
  const Reader read(environment);
  std::optional<Claim> claim = outerClaim(read);
  const std::optional<Claim> torch = torchClaim(read, claim);
  const bool hasMpi = claim && usesMpi(*claim, mpi, read);
  if (torch && isInner(*torch, claim, hasMpi, read))
    claim = torch;
  if (!claim && read.has("PMIX_RANK"))
    throw LaunchError("PMIX_RANK=" + read.word("PMIX_RANK") +
                      ": one of several processes, but nothing says of how "
                      "many: start them with mpirun, srun or torchrun");
  Launch launch;
  if (!claim || claim->ranks == 1)
    return launch;
  launch.by = claim->by;
  launch.rank = claim->rank;
  launch.ranks = claim->ranks;
  launch.localRank = claim->localRank;
  launch.localRanks = claim->localRanks;
  launch.choosesDevices = read.has("CUDA_VISIBLE_DEVICES");
  if (launch.by != Launcher::torchrun && hasMpi) {
    launch.transport = Transport::mpi;
  } else {
    launch.transport = Transport::sockets;
    launch.start = startOf(*claim, read);
  }
  return launch;
}

std::optional<int> tasksOfNode(const std::string &list, int node) {
  std::istringstream all(list);
  for (std::string part; std::getline(all, part, ',');) {
    const std::size_t times = part.find("(x");
    const int nodes =
        times == std::string::npos ? 1 : numberAt(part, times + 2);
    const int tasks = numberAt(part, 0);
    if (nodes < 1 || tasks < 1)
      return std::nullopt;
    if (node < nodes)
      return tasks;
    node -= nodes;
  }
  return std::nullopt;
}

std::string firstNode(const std::string &list) {
  std::string node;
  bool within = false; // between brackets
  bool skips = false;  // past the first number in brackets
  for (const char letter : list) {
    if (letter == '[' && !within) {
      within = true;
      skips = false;
    } else if (letter == ']' && within) {
      within = false;
    } else if (!within && letter == ',') {
      break;
    } else if (within && (letter == ',' || letter == '-')) {
      skips = true;
    } else if (letter == '[' || letter == ']') {
      return {};
    } else if (!within || !skips) {
      node += letter;
    }
  }
  return within ? std::string() : node;
}

int deviceOf(const Launch &launch, int visibleDevices, bool shared) {
  const std::string who = "rank " + text(launch.rank);
  if (visibleDevices < 1)
    throw LaunchError(who + " sees no device");
  const bool alone = launch.by == Launcher::alone;
  const std::optional<int> local = alone ? 0 : launch.localRank;
  const bool isOwn =
      visibleDevices == 1 && (launch.choosesDevices || !launch.localRanks);
  if (isOwn)
    return 0;
  if (!local)
    throw LaunchError(who + " sees " + text(visibleDevices) +
                      " devices, and nothing says which is its own: set "
                      "LOCAL_RANK, or show it one with CUDA_VISIBLE_DEVICES");
  const int here = alone ? 1 : launch.localRanks.value_or(*local + 1);
  if (here > visibleDevices && !shared)
    throw LaunchError(
        who + " is " + text(*local) + " of " + text(here) +
        " ranks on its host, from 0, but sees " + text(visibleDevices) +
        (visibleDevices == 1 ? " device" : " devices") + ": start " +
        text(visibleDevices) +
        " per host, or give each its own with CUDA_VISIBLE_DEVICES");
  return *local % visibleDevices;
}

namespace {

// Returns the number of cores in this process's affinity mask, or `cores` if
// the mask is unknown.
int coresAllowed(int cores) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return cores;
  return std::max(1, CPU_COUNT(&set));
}

int coresOfHost() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

struct Whereabouts {
  std::array<char, 64> host{};
  std::int32_t process = 0;
};

} // namespace

int ranksOfHost(const Launch &launch, int ranks) {
  return launch.transport == Transport::threads
             ? ranks
             : std::min(launch.localRanks.value_or(ranks), ranks);
}

int coresOfRank(const Launch &launch, int ranks) {
  const int cores = coresOfHost();
  const int allowed = coresAllowed(cores),
            here = std::max(1, ranksOfHost(launch, ranks));
  return std::max(1, launch.transport == Transport::threads
                         ? allowed / here
                         : std::min(allowed, cores / here));
}

int coresOfRank(World &world) {
  static_assert(sizeof(Whereabouts) % 4 == 0);
  Whereabouts mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  mine.process = getpid();
  std::vector<Whereabouts> all(static_cast<std::size_t>(world.size()));
  world.allRanks("cores")->allGather(
      "where ranks are", &mine, all.data(),
      {ElementType::i32, 1, sizeof(Whereabouts) / 4});
  int here = 0, threads = 0;
  for (const Whereabouts &each : all)
    if (each.host == mine.host) {
      ++here;
      threads += each.process == mine.process;
    }
  const int cores = coresOfHost();
  return std::max(1, std::min(coresAllowed(cores) / threads, cores / here));
}

} // namespace mtplan::runtime
