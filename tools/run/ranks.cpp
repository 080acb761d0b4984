//===- ranks.cpp - Ranks of a run: backends, processes, agreement ---------===//

#include "tools/run/ranks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <ostream>
#include <system_error>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/communicator/call.h"
#include "runtime/communicator/launch.h"
#include "runtime/cuda/cuda_backend.h"
#include "runtime/data/digest.h"

namespace mtplan::tools {

using namespace runtime;

namespace {

constexpr std::chrono::seconds kGrace{60};

std::vector<char *> pointersTo(std::vector<std::string> &words) {
  std::vector<char *> all;
  all.reserve(words.size() + 1);
  for (std::string &word : words)
    all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> ownCommand() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');)
    words.push_back(word);
  return words;
}

// Returns this process's environment with torchrun's variables. The run's ID
// determines the port.
std::vector<std::string> environmentOf(int rank, int ranks) {
  std::vector<std::string> all;
  static const auto kNow = std::chrono::system_clock::now().time_since_epoch();
  const std::array<std::pair<std::string, std::string>, 9> own{{
      {"RANK=", std::to_string(rank)},
      {"WORLD_SIZE=", std::to_string(ranks)},
      {"LOCAL_RANK=", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE=", std::to_string(ranks)},
      {"MASTER_ADDR=", "127.0.0.1"},
      {"MASTER_PORT=", "1"}, // required but not used to connect
      {"TORCHELASTIC_RUN_ID=",
       fmt::format("mtrun-{}-{}", getpid(), kNow.count())},
      {"TORCHELASTIC_RESTART_COUNT=", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE=", "True"},
  }};
  for (char **entry = environ; *entry; ++entry)
    if (std::ranges::none_of(own, [&](const auto &one) {
          return std::string_view(*entry).starts_with(one.first);
        }))
      all.emplace_back(*entry);
  for (const auto &[name, value] : own)
    all.push_back(name + value);
  return all;
}

// Blocks the signals that next() returns.
class BlockedSignals {
public:
  BlockedSignals() {
    sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1})
      sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, &before);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  BlockedSignals(const BlockedSignals &) = delete;
  BlockedSignals &operator=(const BlockedSignals &) = delete;

  // Returns nothing if no signal arrives within the given time.
  std::optional<siginfo_t> next(std::chrono::seconds most) const {
    const timespec time{most.count(), 0};
    siginfo_t info{};
    if (sigtimedwait(&set, &info, &time) > 0)
      return info;
    return std::nullopt;
  }

  sigset_t set{}, before{};
};

class OwnProcesses {
public:
  OwnProcesses(int ranks, std::ostream &e) : err(e), words(ownCommand()) {
    for (int rank = 0; rank < ranks; ++rank)
      start(rank, ranks);
  }

  int run() {
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> end;
    while (std::ranges::any_of(processes, [](pid_t p) { return p > 0; })) {
      const std::optional<siginfo_t> signal =
          blocked.next(std::chrono::seconds(1));
      // A terminal sends its signals to all processes of the group, so these
      // signals are not passed on.
      if (signal && signal->si_signo != SIGCHLD && signal->si_code != SI_KERNEL)
        sendSignal(signal->si_signo);
      reap();
      if (status != 0 && !end)
        end = Clock::now() + kGrace;
      if (end && Clock::now() > *end)
        sendSignal(SIGKILL);
    }
    return status;
  }

private:
  void start(int rank, int ranks) {
    std::vector<std::string> entries = environmentOf(rank, ranks);
    const std::vector<char *> command = pointersTo(words),
                              environment = pointersTo(entries);
    const pid_t parent = getpid(), process = fork();
    if (process < 0) {
      const int why = errno;
      sendSignal(SIGKILL);
      throw std::system_error(why, std::generic_category(),
                              fmt::format("a process for rank {}", rank));
    }
    if (process == 0) {
      // After fork() only system calls are safe, because other threads may hold
      // locks.
      pthread_sigmask(SIG_SETMASK, &blocked.before, nullptr);
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() == parent)
        execve("/proc/self/exe", command.data(), environment.data());
      _exit(1);
    }
    processes.push_back(process);
  }

  void sendSignal(int number) const {
    for (const pid_t process : processes)
      if (process > 0)
        kill(process, number);
  }

  void reap() {
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      int ended = 0;
      if (processes[rank] <= 0 ||
          waitpid(processes[rank], &ended, WNOHANG) != processes[rank])
        continue;
      processes[rank] = 0;
      if (WIFSIGNALED(ended))
        err << fmt::format("rank {} was ended by signal {} ({})\n", rank,
                           WTERMSIG(ended), strsignal(WTERMSIG(ended)))
            << std::flush;
      if (status == 0)
        status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1;
    }
  }

  std::ostream &err;
  std::vector<std::string> words;
  const BlockedSignals blocked;
  std::vector<pid_t> processes; ///< by rank; 0: ended
  int status = 0;
};

std::string digestOf(const std::string &content) {
  Sha256 sum;
  sum.add(content.data(), content.size());
  return sum.finish();
}

// Returns the texts of all ranks, which must have equal sizes.
std::vector<std::string> gather(Communicator &all, const std::string &label,
                                const std::string &mine) {
  std::vector<char> every(mine.size() * static_cast<std::size_t>(all.size()));
  all.allGather(
      label, mine.data(), every.data(),
      {ElementType::i32, 1,
       static_cast<std::int64_t>(mine.size() / sizeof(std::int32_t))});
  std::vector<std::string> apart;
  for (std::size_t at = 0; at < every.size(); at += mine.size())
    apart.emplace_back(every.data() + at, mine.size());
  return apart;
}

// Pads or shortens a text to the same size on all ranks. Keeps the end of the
// text, which has the file name and the digest.
std::string padded(const std::string &text) {
  constexpr std::size_t kShown = 1024;
  std::string end = text.size() > kShown
                        ? "..." + text.substr(text.size() - kShown + 3)
                        : text;
  end.resize(kShown, '\0');
  return end;
}

std::string unpadded(const std::vector<std::string> &texts, int rank) {
  return texts[static_cast<std::size_t>(rank)].c_str();
}

Sides sidesOf(Communicator &all, const StartPart &part) {
  const std::vector<std::string> digests =
      gather(all, part.what, digestOf(part.content));
  std::map<std::string, std::vector<int>> byDigest;
  for (int rank = 0; rank < all.size(); ++rank)
    byDigest[digests[static_cast<std::size_t>(rank)]].push_back(rank);
  Sides sides;
  for (const auto &[digest, side] : byDigest)
    if (side.size() > sides.most.size() ||
        (side.size() == sides.most.size() && side.front() < sides.most.front()))
      sides.most = side;
  for (int rank = 0; rank < all.size(); ++rank)
    if (!std::ranges::binary_search(sides.most, rank))
      sides.others.push_back(rank);
  return sides;
}

} // namespace

void prepareBackend(const RunFlags &flags, int ranks) {
  if (flags.backend == "cuda")
    prepareCuda(ranks);
}

void checkBackend(const RunFlags &flags) {
  if (flags.backend == "cuda" && cudaDevices() == 0)
    throw BadInput(fmt::format(
        "--backend cuda: {}; --backend cpu trains the same plan on CPU ranks",
        whyNoCudaDevice()));
}

bool wantsProcesses(const RunFlags &flags, int ranks) {
  const int devices = flags.backend == "cuda" ? cudaDevices() : 0;
  const bool shares = devices == 1 && flags.ranksAs != "processes";
  if (devices > 0 && ranks > devices && !shares)
    throw BadInput(fmt::format(
        "--backend cuda: {} ranks on this machine, but {} GPU{}: one for each "
        "rank, or (CUDA_VISIBLE_DEVICES=0) one for all ranks of one process",
        ranks, devices, devices == 1 ? "" : "s"));
  return ranks > 1 && (flags.ranksAs == "processes" ||
                       (flags.ranksAs == "auto" && devices > 1));
}

std::unique_ptr<Backend>
makeBackend(const RunFlags &flags, const Launch &launch, int ranks, int rank) {
  const int threads = flags.threads.value_or(coresOfRank(launch, ranks));
  auto cpu = [threads] { return makeCpuBackend(threads); };
  if (flags.backend == "cpu")
    return cpu();
  checkBackend(flags);
  const int devices = cudaDevices();
  int device = 0;
  if (launch.transport != Transport::threads)
    device = deviceOf(launch, devices);
  else if (devices > 1)
    device = rank;
  useCudaDevice(device);
  return makeCudaBackendBeside(cpu);
}

int runOwnProcesses(int ranks, std::ostream &err) {
  return OwnProcesses(ranks, err).run();
}

Sides sidesOf(World &world, const StartPart &part) {
  return sidesOf(*world.allRanks("start"), part);
}

void agreeOnStart(World &world, const std::vector<StartPart> &parts) {
  std::unique_ptr<Communicator> all = world.allRanks("start");
  for (const StartPart &part : parts) {
    const auto [most, others] = sidesOf(*all, part);
    if (others.empty())
      continue;
    const std::vector<std::string> shown =
        gather(*all, part.what, padded(part.shown));
    std::string both;
    if (!part.shown.empty())
      both = fmt::format("rank {} has {}, rank {} has {}; ", others.front(),
                         unpadded(shown, others.front()), most.front(),
                         unpadded(shown, most.front()));
    throw CommunicationError(
        fmt::format("{} {} not started with the {} of {}: {}all need the same",
                    wordsOf(others), others.size() == 1 ? "was" : "were",
                    part.what, wordsOf(most), both));
  }
}

} // namespace mtplan::tools
