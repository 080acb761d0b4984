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

/// Synchronizes a collective between threads. All threads enter with their
/// calls and buffers, check that the calls match, read and write each other's
/// buffers directly, and leave when all have finished. Until the last thread
/// has entered, a waiting thread may time out, which makes the rendezvous fail
/// for all threads. Once the last thread has entered, no thread times out.
class Rendezvous {
public:
  Rendezvous(Hub &hub, GroupName group);

  struct Contribution {
    Call call;
    const void *in = nullptr;
    void *out = nullptr;
  };

  /// Blocks until all ranks have entered call `number`, counted from 0. Throws
  /// CommunicationError if their calls differ or a rank is missing; after that,
  /// this rank must not enter again.
  void come(int place, std::uint64_t number, Contribution contribution);

  /// Returns the contribution of the rank at index `place` of the group. The
  /// result is valid only between come() and leave().
  const Contribution &contribution(int place) const {
    return slots[place].contribution;
  }

  /// Blocks until no rank uses another's buffers any more.
  void leave(std::uint64_t number) noexcept;

  const GroupName &group() const { return its; }
  int size() const { return static_cast<int>(its.ranks.size()); }

private:
  struct alignas(64) Slot {
    Contribution contribution;
    std::atomic<std::uint64_t> came{0}; ///< calls entered so far
  };

  static constexpr std::uint64_t kBroken = std::uint64_t{1} << 63;

  /// Returns the value of `steps` once all ranks have entered call `number`.
  std::uint64_t stepsToComplete(std::uint64_t number) const;
  bool withdraw(std::uint64_t number);

  Hub &hub;
  GroupName its;
  std::vector<Slot> slots;
  /// Counts the entries and exits of all ranks. kBroken is set after a timeout.
  alignas(64) std::atomic<std::uint64_t> steps{0};
  Gate gate;
};

/// Gives one thread access to a group. Each rank copies its data from the
/// others' buffers. In an all-reduce each rank reduces its share of all inputs
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
