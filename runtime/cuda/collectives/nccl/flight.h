//===- flight.h - A call of NCCL that is under way --------------*- C++ -*-===//
//
// Calls of a recording have events of their own, which every launch of its
// graph records anew. So that those of the launch before are not taken for
// them, they are held against the time of an event before the launch. Where a
// device does not tell of a graph's events, a call begins and ends with its
// graph.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_FLIGHT_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_FLIGHT_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/cuda/collectives/nccl/watchdog.h"
#include "runtime/cuda/handles.h"

namespace mtplan::runtime::cuda {

/// What lies on the stream of a graph right before its last launch and right
/// behind it.
struct GraphLaunch {
  Event before{cudaEventDefault}, behind;
};

struct Flight {
  /// Its ends on the device.
  struct Marks {
    explicit Marks(unsigned flags) : begun(flags), ended(flags) {}
    Event begun, ended;
  };

  std::string what;
  std::int64_t step = 0; ///< 0: of none
  std::shared_ptr<Marks> marks;
  std::shared_ptr<const GraphLaunch> launch; ///< null: not in a graph
  bool isQueued = false;                     ///< `ended` has been recorded
  /// When it was seen to have begun.
  std::optional<Ward::Clock::time_point> since;

  std::string words() const;
  bool hasBegun() const;
  bool hasEnded() const;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_FLIGHT_H
