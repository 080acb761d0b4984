//===- hub.cpp - State that thread ranks share ----------------------------===//

#include "runtime/communicator/hub.h"

#include <algorithm>

namespace mtplan::runtime {

// Ranks spin only if each has a processor. Otherwise a spinning rank may occupy
// the processor that the awaited rank needs.
Hub::Hub(int ranks, const WorldOptions &options)
    : its(options), mayOverlap(static_cast<unsigned>(ranks) <=
                               std::thread::hardware_concurrency()),
      ended(ranks), waits(ranks) {
  add(ends);
}

void Hub::fail(int rank, const std::string &because) noexcept {
  {
    const std::lock_guard lock(failure);
    if (failed)
      return;
    failedRank = rank;
    why = because;
    failed = true;
  }
  wakeAll();
}

void Hub::echo() const {
  const std::lock_guard lock(failure);
  throw Echo(failedRank, why);
}

void Hub::end(int rank) noexcept {
  ended[rank] = true;
  wakeAll();
}

std::vector<int> Hub::awaitEnds(std::chrono::milliseconds afterFailure) {
  const auto left = [&] {
    std::vector<int> ranks;
    for (int rank = 0; rank < this->ranks(); ++rank)
      if (!ended[rank])
        ranks.push_back(rank);
    return ranks;
  };
  while (!failed && !left().empty())
    ends.sleep(Gate::Clock::now() + std::chrono::hours(1),
               [&] { return failed || left().empty(); });
  ends.sleep(Gate::Clock::now() + afterFailure, [&] { return left().empty(); });
  return left();
}

void Hub::add(Gate &gate) {
  const std::lock_guard lock(gateList);
  gates.push_back(&gate);
}

void Hub::wakeAll() noexcept {
  const std::lock_guard lock(gateList);
  for (Gate *gate : gates)
    gate->wake();
}

Doing Hub::doing(int rank) {
  Doing result;
  if (ended[rank]) {
    result.state = Doing::ended;
    return result;
  }
  const std::lock_guard lock(board);
  for (const Await *wait : waits[rank]) {
    std::vector<int> missing = wait->missing();
    if (missing.empty())
      continue;
    result.state = Doing::waiting;
    result.wait = {wait->what(), std::move(missing)};
    return result;
  }
  return result;
}

/// Returns the error message of a timeout, or "" if no rank is missing any
/// more.
std::string Hub::reasonToGiveUp(const Await &wait,
                                std::chrono::milliseconds waited) {
  std::vector<int> missing = wait.missing();
  if (missing.empty())
    return {};
  return explain(wait.rank, {wait.what(), std::move(missing)}, waited,
                 [&](int rank) { return doing(rank); });
}

void Hub::awaitAsleep(Gate &gate, const Await &wait,
                      const std::function<bool()> &done) {
  struct Shown {
    Hub &hub;
    const Await &wait;
    Shown(Hub &itsHub, const Await &itsWait) : hub(itsHub), wait(itsWait) {
      const std::lock_guard lock(hub.board);
      hub.waits[wait.rank].push_back(&wait);
    }
    ~Shown() {
      const std::lock_guard lock(hub.board);
      std::erase(hub.waits[wait.rank], &wait);
    }
  } shown(*this, wait);

  const auto anEndedIsMissing = [&] {
    if (std::ranges::none_of(ended,
                             [](const auto &flag) { return flag.load(); }))
      return false;
    const std::vector<int> missing = wait.missing();
    return std::ranges::any_of(missing,
                               [&](int rank) { return ended[rank].load(); });
  };
  const auto deadline = Gate::Clock::now() + its.patience;
  for (;;) {
    gate.sleep(deadline,
               [&] { return done() || failed || anEndedIsMissing(); });
    // The flags `ended` must be read before `failed`: a rank that fails sets
    // `failed` before it ends, so that no failure looks like a normal end.
    const bool giveUp = anEndedIsMissing() || Gate::Clock::now() >= deadline;
    if (done())
      return;
    if (failed) {
      if (!wait.withdraw())
        return;
      echo();
    }
    if (!giveUp)
      continue;
    const std::string reason = reasonToGiveUp(wait, its.patience);
    if (reason.empty())
      continue;
    if (!wait.withdraw())
      return;
    fail(wait.rank, reason);
    throw CommunicationError(reason);
  }
}

} // namespace mtplan::runtime
