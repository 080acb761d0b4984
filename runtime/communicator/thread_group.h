//===- thread_group.h - Collectives of thread ranks -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_THREAD_GROUP_H
#define MTPLAN_RUNTIME_COMMUNICATOR_THREAD_GROUP_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/communicator/hub.h"

namespace mtplan::runtime {

/// A collective of threads. All threads arrive with their calls and buffers,
/// check that the calls match, read and write the others' buffers directly, and
/// leave when all have finished. Until the last thread has arrived, a waiting
/// thread may give up, which breaks the rendezvous for all. After that all
/// threads stay.
class Rendezvous {
public:
  Rendezvous(Hub &hub, GroupName group);

  /// Holds the contribution of one place.
  struct Seat {
    Call call;
    const void *in = nullptr;
    void *out = nullptr;
  };

  /// Returns once all places have arrived and agree. Throws if they differ or
  /// if one is missing; this place must not come again then. `number` counts
  /// the calls of a place, from 0.
  void come(int place, std::uint64_t number, Seat seat);

  /// Returns the seat of any place, between come() and leave().
  const Seat &seat(int place) const { return seats[place].seat; }

  /// Returns once no place uses another's buffers any more.
  void leave(std::uint64_t number) noexcept;

  const GroupName &group() const { return its; }
  int size() const { return static_cast<int>(its.ranks.size()); }

private:
  struct alignas(64) Chair {
    Seat seat;
    std::atomic<std::uint64_t> came{0}; ///< number of arrivals
  };

  static constexpr std::uint64_t kBroken = std::uint64_t{1} << 63;

  /// Returns the value of `steps` at which the rendezvous `number` is complete.
  std::uint64_t stepsToComplete(std::uint64_t number) const;
  bool withdraw(std::uint64_t number);

  Hub &hub;
  GroupName its;
  std::vector<Chair> seats;
  /// Counts arrivals and departures of all places; never complete after kBroken
  /// is set.
  alignas(64) std::atomic<std::uint64_t> steps{0};
  Gate gate;
};

/// One thread's end of a group. Each place copies what it needs from the
/// others' buffers. In a reduction each place reduces its share of all inputs
/// into all outputs.
class ThreadGroup final : public CallGroup {
public:
  ThreadGroup(std::shared_ptr<Rendezvous> rendezvous, int place);

  int size() const override { return rendezvous->size(); }
  int place() const override { return its; }

private:
  class Session;

  void make(const Call &call, const void *in, void *out) override;

  std::shared_ptr<Rendezvous> rendezvous;
  int its;
  std::uint64_t calls = 0;
  bool broken = false;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_THREAD_GROUP_H
