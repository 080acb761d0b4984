//===- nccl_link.h - A communicator of NCCL ---------------------*- C++ -*-===//
//
// A link does not block the host, so that it can be aborted at any time, also
// while it is made or connects at its first call. The work between begin() and
// end() has an event before it and one after it. A call that has begun on the
// device, and has not ended within the world's patience, is reported.
//
// The host's world finds the rank that is to blame. Each rank that waits too
// long makes a host call in the words of its device call. Ranks that wait in
// the same call make the same host call, and ranks whose devices have not come
// to the call do not. The message is therefore that of a host transport: it
// names the ranks that did not come to which call of which group, the ranks
// that those wait for, or two calls that do not match.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_LINK_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_LINK_H

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nccl.h>

#include "runtime/cuda/collectives/nccl/watchdog.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/handles.h"

namespace mtplan::runtime::cuda {

/// The events right before and right behind the last launch of a graph.
struct GraphLaunch {
  Event before{cudaEventDefault}, behind;
};

/// A call of NCCL in flight.
///
/// Recorded calls have events of their own, which every launch of their graph
/// records anew. They are compared with an event before the launch, so that
/// those of an earlier launch do not count. On a device that does not report
/// events of graphs, a call begins and ends with its graph.
struct Flight {
  /// The events of its begin and end.
  struct Marks {
    explicit Marks(unsigned flags) : begun(flags), ended(flags) {}
    Event begun, ended;
  };

  std::string what;
  std::int64_t step = 0; ///< 0: of no step
  std::shared_ptr<Marks> marks;
  std::shared_ptr<const GraphLaunch> launch; ///< null: not in a graph
  bool isQueued = false;                     ///< `ended` has been recorded
  /// When the watchdog noticed that it had begun.
  std::optional<Ward::Clock::time_point> since;

  std::string words() const;
  bool hasBegun() const;
  bool hasEnded() const;
};

/// Every so many places have one that makes an id, so that a large communicator
/// is not made through a single rank.
inline constexpr int kPlacesOfALead = 256;
ncclUniqueId newUniqueId();

/// A communicator of NCCL, and its calls in flight.
class NcclLink final : public Ward {
public:
  /// Asks the other ranks whether they wait in `what`, too; returns if all do.
  using Ask = std::function<void(const std::string &what)>;

  struct Party {
    std::string name; ///< group "tp" (ranks 0 1 2)
    int size = 1, place = 0;
    std::vector<ncclUniqueId> ids; ///< one for every kPlacesOfALead places
  };

  /// Begins to make the communicator.
  NcclLink(const Watchdog &watchdog, Party party, Ask ask);
  ~NcclLink() override { abort(); }
  NcclLink(const NcclLink &) = delete;
  NcclLink &operator=(const NcclLink &) = delete;

  /// Waits until the communicator is made.
  void awaitMade();
  /// Returns whether calls may be made: the communicator is made, and the last
  /// call is on its stream.
  bool isReady();

  /// Registers memory, which calls access without a copy, until the
  /// communicator has ended. \throws CommunicationError with the bytes if NCCL
  /// does not register it
  void registerMemory(void *data, std::size_t bytes);
  /// Allocates memory of the device until the communicator has ended.
  std::byte *allocate(std::size_t bytes, bool registered);

  using Make = std::function<ncclResult_t(ncclComm_t)>;
  /// Makes grouped calls of NCCL.
  void start(const Make &calls);
  /// Calls start(), and waits until the calls are on their streams.
  void call(const Make &calls);

  /// Enclose the queued or recorded work of a call.
  /// \param what  names the call
  void begin(const std::string &what, cudaStream_t stream);
  void end(cudaStream_t stream);

  /// Returns the calls that were recorded since the last time.
  std::vector<Flight> takeRecorded();
  /// Returns whether the calls of `launch` have ended, so that it may be
  /// repeated.
  bool haveEnded(const GraphLaunch &launch);
  /// Adds calls that `launch` has repeated; its events have been recorded.
  void repeat(const std::vector<Flight> &calls,
              const std::shared_ptr<const GraphLaunch> &launch);

  /// Returns whether all calls have ended. Throws a fault of the communicator.
  bool isIdle();
  /// Begins to close the communicator. All ranks call it when they are idle,
  /// and close() once isClosed().
  void beginToClose();
  bool isClosed();
  void close();

  void look(Clock::time_point now) override;
  void abort() noexcept override;

private:
  using Piece = std::unique_ptr<std::byte, void (*)(void *) noexcept>;

  ncclResult_t state();
  [[noreturn]] void throwGone() const;
  [[noreturn]] void throwFault(ncclResult_t result);
  void checkResult(ncclResult_t result);
  void settle();
  void forgetEnded();
  std::optional<std::string> overdue(Clock::time_point now);

  const Watchdog &watchdog;
  const Party party;
  const Ask ask;
  std::mutex mutex; ///< guards the members below
  ncclComm_t comm = nullptr;
  std::deque<Flight> flights; ///< in order
  std::vector<Flight> recorded;
  std::vector<std::shared_ptr<Flight::Marks>> spare;
  /// Handles of registrations, which NCCL may fill in later.
  std::deque<void *> registrations;
  std::vector<Piece> allocated;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_LINK_H
