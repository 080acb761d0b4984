//===- mpi_link.h - Messages between processes, and patience ----*- C++ -*-===//
//
// Point-to-point messages of MPI alone, polled: MPI's own collectives and
// waits hang when a rank does not come, and say nothing of what does not match.
//
// Beside the data, ranks tell each other on a channel of its own that they have
// failed, and ask each other what they wait for. Once a rank has failed it
// makes no more calls of MPI but the one that ends it, since buffers of calls
// that were given up are gone.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_LINK_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_LINK_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include "runtime/communicator/neighbours.h"
#include "runtime/communicator/waiting.h"

namespace mtplan::runtime {

/// Rows of bytes in memory.
struct Rows {
  char *base = nullptr;
  std::int64_t rows = 1;
  std::int64_t bytes = 0;  ///< of a row
  std::int64_t stride = 0; ///< from one to the next; unread of a single row
};

/// What may be sent as one message.
inline constexpr std::int64_t kMessageBytes = 1 << 20;

class MpiLink {
public:
  using Clock = std::chrono::steady_clock;

  /// Needs MPI to be initialised.
  explicit MpiLink(const WorldOptions &options);
  /// Before MPI is finalised.
  ~MpiLink();
  MpiLink(const MpiLink &) = delete;
  MpiLink &operator=(const MpiLink &) = delete;

  int rank() const { return its; }
  int size() const { return ranks; }
  /// Channels that there are, from 0.
  int channels() const { return (highestTag - 1) / 2; }

  /// A request that is under way, with its other end.
  struct Pending {
    MPI_Request request;
    int peer;
  };
  using Requests = std::vector<Pending>;

  enum class Traffic { group, transfer };

  /// At most kMessageBytes each; memory stays as it is until awaited.
  void send(Requests &requests, const Rows &from, int to, Traffic traffic,
            int channel);
  void receive(Requests &requests, const Rows &to, int from, Traffic traffic,
               int channel);
  /// Sends what the link keeps until it is through.
  void sendOwned(std::vector<std::byte> message, std::int64_t bytes, int to,
                 Traffic traffic, int channel);
  /// Memory for sendOwned, of at least so many bytes.
  std::vector<std::byte> memory(std::int64_t bytes);

  /// Returns once all requests are through, and forgets them. Throws, after
  /// telling all others, if nothing moves for the world's patience; throws the
  /// echo if another has failed.
  void await(Requests &requests, const std::function<std::string()> &what);

  /// From now on this rank comes to nothing but the end, where it waits for the
  /// others as long as they take.
  void end() { ended = true; }
  /// Returns once all that is owned is through.
  void awaitOwned(const std::function<std::string()> &what);
  /// A message that nobody has asked for: its first bytes, and who sent it
  /// where.
  struct Stray {
    std::vector<char> message;
    int from;
    int channel;
  };
  std::optional<Stray> stray();

  /// Tells all; the first reason stands. No calls of MPI after this.
  void fail(const std::string &because) noexcept;
  void throwIfFailed() const;

private:
  struct Wait;
  struct Owned {
    MPI_Request request;
    int peer;
    std::vector<std::byte> message;
  };

  void obeyTermination();
  bool advance(Requests &requests);
  void advanceOwned();
  void carry();
  void listen();
  void hear(int from, int tag, const std::string &text);
  void tell(int to, int tag, const std::string &text);
  std::string ownDoing() const;
  [[noreturn]] void giveUp(const Wait &wait, std::chrono::milliseconds waited,
                           bool late);
  void remember(int rank, const std::string &because);
  void check(int code, int peer) const;

  WorldOptions options;
  MPI_Comm data = MPI_COMM_NULL, control = MPI_COMM_NULL;
  int its = 0, ranks = 1, highestTag = 32767;
  std::optional<Neighbours> neighbours;

  mutable std::mutex mutex; ///< of all calls of MPI and what follows
  std::vector<Owned> owned;
  std::vector<std::vector<std::byte>> spare;
  std::vector<const Wait *> waits;
  std::vector<std::optional<Doing>> answers;           ///< by rank
  std::list<std::pair<MPI_Request, std::string>> told; ///< stay where they are
  int failedRank = 0;
  std::string why;

  std::atomic<bool> failed{false}, ended{false};
  std::atomic<bool> saidWhom{false}; ///< this rank waits for, once told to end
  std::atomic<Clock::rep> terminatedAt{0}; ///< when this rank saw it; 0: not

  /// MPI moves large messages only while it is called; what is owned is to
  /// arrive while its sender computes.
  std::condition_variable ownedCame;
  bool leaving = false;
  std::thread carrier;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MPI_LINK_H
