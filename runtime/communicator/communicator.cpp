//===- communicator.cpp - The group of all ranks, and signals -------------===//

#include "runtime/communicator/communicator.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <numeric>

namespace mtplan::runtime {
namespace {

volatile std::sig_atomic_t terminated = 0, asked = 0;

/// Launchers may signal both the process group and the process, so a second
/// signal within this time counts as the same request.
constexpr std::int64_t kSameSignal = 1'000'000'000; ///< nanoseconds

/// Holds the time of the first signal in nanoseconds; 0 means that no signal
/// has arrived.
std::atomic<std::int64_t> first = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// Stores the first request to end the process. A second request ends the
/// process.
void keep(int number) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t time =
      std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  std::int64_t before = 0;
  if (!first.compare_exchange_strong(before, time) &&
      time - before >= kSameSignal) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  if (number == SIGTERM)
    terminated = 1;
  asked = 1;
}

void listenTo(int number, void (*handler)(int)) {
  struct sigaction before = {};
  if (sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL)
    return;
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

} // namespace

std::unique_ptr<Communicator> World::allRanks(const std::string &name) {
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group(name, ranks);
}

void listenForTermination() {
  listenTo(SIGTERM, [](int) { terminated = 1; });
}

void handleSignals() {
  listenTo(SIGTERM, keep);
  // mpirun forwards SIGUSR1 to its processes.
  listenTo(SIGUSR1, [](int) { asked = 1; });
  // A terminal sends SIGINT to all processes of a run. The signal does not mean
  // that a rank has died, so keep() does not set `terminated` for SIGINT.
  listenTo(SIGINT, keep);
}

bool isTerminated() { return terminated != 0; }
bool terminationAsked() { return asked != 0; }

} // namespace mtplan::runtime
