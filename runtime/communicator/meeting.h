//===- meeting.h - Where the threads of a group meet ------------*- C++ -*-===//
//
// A collective of threads: all come, each with its call and its buffers; all
// see that the calls are the same; each reads and writes the others' buffers
// directly; nobody leaves before all are done with that. Until the last has
// come, whoever waits may give up, and then there is no meeting for anybody;
// from then on, all stay.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MEETING_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MEETING_H

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/communicator/gate.h"
#include "runtime/communicator/hub.h"

namespace mtplan::runtime {

class Meeting {
public:
  Meeting(Hub &hub, GroupName group);

  /// What a place brings.
  struct Seat {
    Call call;
    const void *in = nullptr;
    void *out = nullptr;
  };

  /// Returns once all are there and agree. Throws if they do not, or if one
  /// does not come; then this place must not come again. `number` counts the
  /// calls of a place, from 0.
  void come(int place, std::uint64_t number, Seat seat);

  /// Of any place, between come() and leave().
  const Seat &seat(int place) const { return seats[place].seat; }

  /// Returns once all are done with each other's buffers.
  void leave(std::uint64_t number) noexcept;

  const GroupName &group() const { return its; }
  int size() const { return static_cast<int>(its.ranks.size()); }

private:
  struct alignas(64) Chair {
    Seat seat;
    std::atomic<std::uint64_t> came{0}; ///< how often
  };

  static constexpr std::uint64_t kBroken = std::uint64_t{1} << 63;

  /// Steps that all have taken once number's meeting is complete.
  std::uint64_t stepsToMeet(std::uint64_t number) const;
  bool withdraw(std::uint64_t number);

  Hub &hub;
  GroupName its;
  std::vector<Chair> seats;
  /// Comings and leavings of all; never complete again once kBroken.
  alignas(64) std::atomic<std::uint64_t> steps{0};
  Gate gate;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MEETING_H
