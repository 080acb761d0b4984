//===- nccl_link.h - A communicator of NCCL ---------------------*- C++ -*-===//
//
// It does not block the host, so that it can be given up at any time, also
// while it is made or makes its connections at its first call. What is queued
// between begin() and end() has an event before it and one after it: a call
// that has begun on the device, and has not ended within the world's patience,
// is reported.
//
// Who is to blame is for the host's world to say. Each rank that waits too long
// asks the others there, in the words of its call; who waits in the same call
// asks the same; and who has not come to it on the device does not come there,
// either. So the message is that of a host's transport: who did not come to
// which call of which group, whom that rank waits for in turn, and two calls
// that do not match. A rank has come to a call when its device has.
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

#include "runtime/cuda/collectives/nccl/flight.h"
#include "runtime/cuda/collectives/nccl/watchdog.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Made by the places that lead: every so many, so that a large communicator is
/// not made through a single rank.
inline constexpr int kPlacesOfALead = 256;
ncclUniqueId newUniqueId();

class NcclLink final : public Ward {
public:
  /// Asks the others of the communicator whether they wait in `what`, too;
  /// returns if all do.
  using Ask = std::function<void(const std::string &what)>;

  struct Party {
    std::string name; ///< group "tp" (ranks 0 1 2)
    int size = 1, place = 0;
    std::vector<ncclUniqueId> ids; ///< one for every kPlacesOfALead places
  };

  /// Begins to make it.
  NcclLink(const Watchdog &watchdog, Party party, Ask ask);
  ~NcclLink() override { abort(); }
  NcclLink(const NcclLink &) = delete;
  NcclLink &operator=(const NcclLink &) = delete;

  /// Waits until it is made.
  void awaitMade();
  /// Whether calls may be made: neither is it being made, nor is the last call
  /// still on its way to the stream.
  bool isReady();

  /// Calls may read and write there without a copy. Stays until the
  /// communicator has ended.
  /// \throws CommunicationError with the bytes if NCCL does not register it
  void registerMemory(void *data, std::size_t bytes);
  /// Of the device, for calls of this one; kept until it has ended.
  std::byte *allocate(std::size_t bytes, bool registered);

  using Make = std::function<ncclResult_t(ncclComm_t)>;
  /// Makes calls of NCCL, as one group of them.
  void start(const Make &calls);
  /// start(), and waits until they are on their streams: not for the device.
  void call(const Make &calls);

  /// Around what is queued, or recorded, for a call. \param what  names it
  void begin(const std::string &what, cudaStream_t stream);
  void end(cudaStream_t stream);

  /// The calls that were recorded since the last time.
  std::vector<Flight> takeRecorded();
  /// Whether those of `launch` have, so that it may be made again.
  bool haveEnded(const GraphLaunch &launch);
  /// They were made again by `launch`, whose events have been recorded.
  void repeat(const std::vector<Flight> &calls,
              const std::shared_ptr<const GraphLaunch> &launch);

  /// Whether all calls have ended. Throws what has gone wrong.
  bool isIdle();
  /// All ranks do that, when they are idle: then the others need no more of
  /// this one.
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
  std::mutex mutex; ///< of what follows
  ncclComm_t comm = nullptr;
  std::deque<Flight> flights; ///< in the order of the calls
  std::vector<Flight> recorded;
  std::vector<std::shared_ptr<Flight::Marks>> spare;
  /// Their handles, which NCCL may fill in later.
  std::deque<void *> registrations;
  std::vector<Piece> allocated;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_LINK_H
