//===- thread_group.cpp - Collectives of thread ranks ---------------------===//

#include "runtime/communicator/thread_group.h"

#include <span>

#include "runtime/communicator/reduce.h"

namespace mtplan::runtime {

Rendezvous::Rendezvous(Hub &itsHub, GroupName group)
    : hub(itsHub), its(std::move(group)), slots(its.ranks.size()) {
  hub.add(gate);
}

std::uint64_t Rendezvous::stepsToComplete(std::uint64_t number) const {
  return (2 * number + 1) * slots.size();
}

/// Breaks the rendezvous and returns true, or returns false if all ranks have
/// entered in the meantime.
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

void Rendezvous::come(int place, std::uint64_t number,
                      Contribution contribution) {
  Slot &mine = slots[place];
  mine.contribution = std::move(contribution);
  mine.came = number + 1;
  ++steps;
  gate.wake();

  Hub::Await wait;
  wait.rank = its.ranks[place];
  wait.what = [&] { return wordsOf(mine.contribution.call, its); };
  wait.missing = [&] {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].came <= number)
        ranks.push_back(its.ranks[i]);
    return ranks;
  };
  wait.withdraw = [&] { return withdraw(number); };
  // A thread that enters a broken rendezvous must not return. The thread waits
  // until the hub has failed.
  const std::uint64_t all = stepsToComplete(number);
  hub.await(gate, wait, [&] {
    const std::uint64_t seen = steps;
    return !(seen & kBroken) && seen >= all;
  });

  std::vector<const Call *> calls;
  calls.reserve(slots.size());
  for (const Slot &slot : slots)
    calls.push_back(&slot.contribution.call);
  if (const auto words = mismatch(calls, its))
    throw CommunicationError(*words);
}

void Rendezvous::leave(std::uint64_t number) noexcept {
  const std::uint64_t all = stepsToComplete(number) + slots.size();
  ++steps;
  gate.wake();
  hub.awaitSurely(gate, [&] { return (steps & ~kBroken) >= all; });
}

/// Represents one call, from the entry of all ranks until all have finished.
class ThreadGroup::Session {
public:
  Session(ThreadGroup &itsGroup, Call call, const void *in, void *out)
      : group(itsGroup) {
    Rendezvous &place = *group.rendezvous;
    checkCall(call, place.group());
    if (group.broken)
      throw CommunicationError(wordsOf(call, place.group()) +
                               ": a call before it has failed");
    group.broken = true;
    place.come(group.its, group.calls, {std::move(call), in, out});
    group.broken = false;
  }
  ~Session() { group.rendezvous->leave(group.calls++); }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const char *in(int place) const {
    return static_cast<const char *>(group.rendezvous->contribution(place).in);
  }
  char *out(int place) const {
    return static_cast<char *>(group.rendezvous->contribution(place).out);
  }

  /// Calls action(index) for every index in the group, starting with this
  /// rank's, so that the threads do not all read from the same rank at once.
  template <typename Do> void forEachPlace(const Do &action) const {
    for (int i = 0; i < group.size(); ++i)
      action((group.its + i) % group.size());
  }

private:
  ThreadGroup &group;
};

ThreadGroup::ThreadGroup(std::shared_ptr<Rendezvous> itsRendezvous, int place)
    : rendezvous(std::move(itsRendezvous)), its(place) {}

void ThreadGroup::make(const Call &call, const void *in, void *out) {
  const Pieces &pieces = call.pieces;
  const std::int64_t bytes = pieces.inner * bytesOf(pieces.type);
  const std::int64_t row = size() * bytes;
  std::vector<const void *> sources(size());
  std::vector<void *> outputs(size());
  const Session session(*this, call, in, out);
  for (int q = 0; q < size(); ++q) {
    sources[q] = session.in(q);
    outputs[q] = session.out(q);
  }
  // Reduces this rank's share of the elements, which no other rank reads or
  // writes.
  const auto reduceShare = [&](std::span<void *const> to) {
    const Share share = shareOf(pieces.outer * pieces.inner, its, size());
    reduceInOrder(pieces.type, call.reduction, sources, to, share.first,
                  share.count);
  };
  switch (call.kind) {
  case CallKind::allReduce:
    return reduceShare(outputs);
  case CallKind::reduce:
    return reduceShare({&outputs[call.root], 1});
  case CallKind::allGather:
    return session.forEachPlace([&](int q) {
      copyRows(static_cast<char *>(out) + q * bytes, row, session.in(q), bytes,
               pieces.outer, bytes);
    });
  case CallKind::reduceScatter:
    for (std::int64_t o = 0; o < pieces.outer; ++o) {
      for (int q = 0; q < size(); ++q)
        sources[q] = session.in(q) + o * row + its * bytes;
      void *const output = static_cast<char *>(out) + o * bytes;
      reduceInOrder(pieces.type, call.reduction, sources, {&output, 1}, 0,
                    pieces.inner);
    }
    return;
  case CallKind::allToAll:
    return session.forEachPlace([&](int q) {
      copyRows(static_cast<char *>(out) + q * bytes, row,
               session.in(q) + its * bytes, row, pieces.outer, bytes);
    });
  case CallKind::broadcast:
    if (its != call.root)
      copyRows(out, bytes, session.in(call.root), bytes, pieces.outer, bytes);
    return;
  case CallKind::barrier:
    return;
  }
}

} // namespace mtplan::runtime
