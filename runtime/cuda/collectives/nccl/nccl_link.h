//===- nccl_link.h - An NCCL communicator -----------------------*- C++ -*-===//
//
// A link uses a nonblocking communicator, which can be aborted at any time,
// even during its creation or while its first call opens connections. begin()
// and end() record events before and after each call. A call that has begun on
// the device and has not ended within the world's timeout is reported.
//
// The host's world finds the cause of a timeout. Each rank that times out makes
// a host call with the label of its device call. Ranks that wait in the same
// device call make equal host calls, while ranks whose devices have not reached
// the call make none. The error of the host call therefore names the call, its
// group and the missing ranks, or two mismatched calls.
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

/// Holds the events right before and right after the last launch of a graph.
struct GraphLaunch {
  Event before{cudaEventDefault}, behind;
};

/// Describes an NCCL call in flight.
///
/// A captured call has events that every launch of its graph records again. The
/// time stamp of such an event is compared with the time stamp of an event
/// before the launch, so that records of earlier launches are ignored. If a
/// device does not report events of graphs, a captured call counts as begun
/// when its graph begins, and as ended when its graph ends.
struct CallInFlight {
  struct Marks {
    explicit Marks(unsigned flags) : begun(flags), ended(flags) {}
    Event begun, ended;
  };

  std::string what;
  std::int64_t step = 0; ///< 0: outside of steps
  std::shared_ptr<Marks> marks;
  std::shared_ptr<const GraphLaunch> launch; ///< null: not in a graph
  bool isQueued = false;                     ///< true once `ended` is recorded
  /// Holds the time from which the watchdog counts the timeout of the call.
  std::optional<Ward::Clock::time_point> since;

  std::string words() const;
  bool hasBegun() const;
  bool hasEnded() const;
};

/// Sets the number of ranks per NCCL id. A large communicator has several ids,
/// so that its ranks do not all connect to one rank (ncclCommInitRankScalable).
inline constexpr int kPlacesOfALead = 256;
ncclUniqueId newUniqueId();

class NcclLink final : public Ward {
public:
  /// Makes a host call labelled `what`, which returns if all ranks of the
  /// communicator make the same call, and throws CommunicationError otherwise.
  using Ask = std::function<void(const std::string &what)>;

  struct Members {
    std::string name; ///< for example group "tp" (ranks 0 1 2)
    int size = 1, place = 0;
    std::vector<ncclUniqueId> ids; ///< one per kPlacesOfALead ranks
  };

  /// Begins to create the communicator.
  NcclLink(const Watchdog &watchdog, Members members, Ask ask);
  ~NcclLink() override { abort(); }
  NcclLink(const NcclLink &) = delete;
  NcclLink &operator=(const NcclLink &) = delete;

  /// Waits until the communicator is created.
  void awaitMade();
  /// Returns whether the next call may be made. A call may be made once the
  /// communicator is created and NCCL has queued the previous call on its
  /// stream.
  bool isReady();

  /// Registers memory with NCCL until the communicator is closed.
  /// \throws CommunicationError with the size if the registration fails
  void registerMemory(void *data, std::size_t bytes);
  /// Allocates device memory, which is freed with the link.
  std::byte *allocate(std::size_t bytes, bool registered);

  using Make = std::function<ncclResult_t(ncclComm_t)>;
  /// Makes NCCL calls as a group (ncclGroupStart and ncclGroupEnd).
  void start(const Make &calls);
  /// Calls start(), and waits until the calls are queued on their streams.
  void call(const Make &calls);

  /// Records the event before (begin) or after (end) a call that is queued or
  /// captured.
  void begin(const std::string &what, cudaStream_t stream);
  void end(cudaStream_t stream);

  /// Returns the calls captured since the last takeRecorded().
  std::vector<CallInFlight> takeRecorded();
  /// Returns whether all calls of `launch` have ended, so that its graph may be
  /// launched again.
  bool haveEnded(const GraphLaunch &launch);
  /// Adds the captured calls of a graph to the calls in flight. `launch` must
  /// have been recorded around the launch of the graph.
  void repeat(const std::vector<CallInFlight> &calls,
              const std::shared_ptr<const GraphLaunch> &launch);

  bool isIdle();
  /// Begins to close the communicator. All ranks must call this function once
  /// isIdle() is true, and then close() once isClosed() is true.
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
  const Members members;
  const Ask ask;
  std::mutex mutex; ///< guards the members below, except `allocated`
  ncclComm_t comm = nullptr;
  std::deque<CallInFlight> flights; ///< in order of their calls
  std::vector<CallInFlight> recorded;
  std::vector<std::shared_ptr<CallInFlight::Marks>> spare;
  /// Holds the handles of registrations. NCCL may write a handle later, so
  /// handles must not move.
  std::deque<void *> registrations;
  std::vector<Piece> allocated;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_LINK_H
