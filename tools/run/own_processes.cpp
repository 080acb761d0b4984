//===- own_processes.cpp - Ranks as processes of this command -------------===//

#include "tools/run/own_processes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace mtplan::tools {

namespace {

constexpr std::chrono::seconds kGrace{60};

// Returns pointers with a null at the end, for exec.
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

// Returns the environment that torchrun would give; the run's name determines
// the port.
std::vector<std::string> environmentOf(int rank, int ranks) {
  std::vector<std::string> all;
  static const auto kNow = std::chrono::system_clock::now().time_since_epoch();
  const std::array<std::pair<std::string, std::string>, 9> own{{
      {"RANK=", std::to_string(rank)},
      {"WORLD_SIZE=", std::to_string(ranks)},
      {"LOCAL_RANK=", std::to_string(rank)},
      {"LOCAL_WORLD_SIZE=", std::to_string(ranks)},
      {"MASTER_ADDR=", "127.0.0.1"},
      {"MASTER_PORT=", "1"}, // the agent's, if there is one
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

// Blocks some signals during its lifetime, and returns them on request.
class Held {
public:
  Held() {
    sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1})
      sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, &before);
  }
  ~Held() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;

  // Returns a pending signal, or nothing after the given time.
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
          held.next(std::chrono::seconds(1));
      // A terminal sends its signals to all processes itself.
      if (signal && signal->si_signo != SIGCHLD && signal->si_code != SI_KERNEL)
        tell(signal->si_signo);
      reap();
      if (status != 0 && !end)
        end = Clock::now() + kGrace;
      if (end && Clock::now() > *end)
        tell(SIGKILL);
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
      tell(SIGKILL);
      throw std::system_error(why, std::generic_category(),
                              fmt::format("a process for rank {}", rank));
    }
    if (process == 0) {
      // Only system calls are allowed here, because other threads may hold any
      // lock.
      pthread_sigmask(SIG_SETMASK, &held.before, nullptr);
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() == parent)
        execve("/proc/self/exe", command.data(), environment.data());
      _exit(1);
    }
    processes.push_back(process);
  }

  void tell(int number) const {
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
  const Held held;
  std::vector<pid_t> processes; ///< by rank; 0: ended
  int status = 0;
};

} // namespace

int runOwnProcesses(int ranks, std::ostream &err) {
  return OwnProcesses(ranks, err).run();
}

} // namespace mtplan::tools
