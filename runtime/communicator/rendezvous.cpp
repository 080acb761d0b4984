//===- rendezvous.cpp - Rendezvous of the threads of a group --------------===//

#include "runtime/communicator/rendezvous.h"

namespace mtplan::runtime {

Rendezvous::Rendezvous(Hub &itsHub, GroupName group)
    : hub(itsHub), its(std::move(group)), seats(its.ranks.size()) {
  hub.add(gate);
}

std::uint64_t Rendezvous::stepsToComplete(std::uint64_t number) const {
  return (2 * number + 1) * seats.size();
}

/// Returns false if all have arrived in the meantime.
bool Rendezvous::withdraw(std::uint64_t number) {
  std::uint64_t seen = steps;
  while (!(seen & kBroken)) {
    if (seen >= stepsToComplete(number))
      return false;
    if (steps.compare_exchange_weak(seen, seen | kBroken))
      break;
  }
  return true;
}

void Rendezvous::come(int place, std::uint64_t number, Seat seat) {
  Chair &mine = seats[place];
  mine.seat = std::move(seat);
  mine.came = number + 1;
  ++steps;
  gate.wake();

  Hub::Await wait;
  wait.rank = its.ranks[place];
  wait.what = [&] { return wordsOf(mine.seat.call, its); };
  wait.missing = [&] {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < seats.size(); ++i)
      if (seats[i].came <= number)
        ranks.push_back(its.ranks[i]);
    return ranks;
  };
  wait.withdraw = [&] { return withdraw(number); };
  // A broken rendezvous has kBroken set, which is no number of steps: a thread
  // that waits here sleeps until the hub has failed.
  const std::uint64_t all = stepsToComplete(number);
  hub.await(gate, wait, [&] {
    const std::uint64_t seen = steps;
    return !(seen & kBroken) && seen >= all;
  });

  std::vector<const Call *> calls;
  calls.reserve(seats.size());
  for (const Chair &chair : seats)
    calls.push_back(&chair.seat.call);
  if (const auto words = mismatch(calls, its))
    throw CommunicationError(*words);
}

void Rendezvous::leave(std::uint64_t number) noexcept {
  const std::uint64_t all = stepsToComplete(number) + seats.size();
  ++steps;
  gate.wake();
  hub.awaitSurely(gate, [&] { return (steps & ~kBroken) >= all; });
}

} // namespace mtplan::runtime
