//===- process_link.h - Waiting for messages between processes --*- C++ -*-===//
//
// A link waits for messages over a Wire, and reports the ranks that are
// missing. Ranks also exchange control texts. In a control text, a rank reports
// that it has failed, for which ranks it waits, or that it will send no more
// control texts. A rank that has failed stops using the wire, because the
// buffers of its pending messages no longer exist.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_LINK_H
#define MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_LINK_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/communicator/waiting.h"
#include "runtime/communicator/wire.h"

namespace mtplan::runtime {

class ProcessLink {
public:
  using Clock = std::chrono::steady_clock;

  /// \param endProcess  must end this process; called if this rank still runs
  /// `options.ending` after another rank's failure. If it is empty, the
  /// launcher ends the process
  ProcessLink(Wire &wire, const WorldOptions &options,
              std::function<void(const std::string &why)> endProcess = {});
  ~ProcessLink();
  ProcessLink(const ProcessLink &) = delete;
  ProcessLink &operator=(const ProcessLink &) = delete;

  int rank() const { return wire.rank(); }
  int size() const { return wire.size(); }
  int channels() const { return (wire.tags() - 1) / 2; }
  std::chrono::milliseconds patience() const { return options.patience; }

  using Requests = std::vector<Wire::Ticket>;

  enum class Traffic { group, transfer };

  /// Start to send or receive a message of at most kMessageBytes, and append
  /// the message's ticket to `requests`. The memory must stay valid until
  /// await() has returned.
  void send(Requests &requests, const Rows &from, int to, Traffic traffic,
            int channel);
  void receive(Requests &requests, const Rows &to, int from, Traffic traffic,
               int channel);
  /// Sends a message. The link owns the message's memory until the message is
  /// sent.
  void sendOwned(std::vector<std::byte> message, std::int64_t bytes, int to,
                 Traffic traffic, int channel);
  /// Returns a buffer of at least `bytes` bytes for sendOwned.
  std::vector<std::byte> memory(std::int64_t bytes);

  /// Blocks until all requests are complete, and clears them. If no request
  /// completes within the timeout, this rank fails, and the error message
  /// contains the text of `what`. If another rank has failed, throws that
  /// failure.
  void await(Requests &requests, const std::function<std::string()> &what);

  /// Declares that this rank has finished. Its later waits have no timeout.
  void end() { ended = true; }
  void awaitOwned(const std::function<std::string()> &what);
  std::optional<Wire::Stray> stray();
  static int channelOf(const Wire::Stray &stray) { return stray.tag / 2; }

  /// Waits, after all ranks have ended, until no rank can send a control text.
  /// Returns the reason of a late failure, or "".
  std::string part();

  /// Sends all ranks the reason for which this rank fails, unless a failure is
  /// known already. The wire must not be used afterwards.
  void fail(const std::string &because) noexcept;
  void throwIfFailed() const;
  /// Receives control texts, and throws if another rank has failed.
  void listenOnce();

private:
  struct Wait;
  struct Owned {
    Wire::Ticket ticket;
    std::vector<std::byte> message;
  };

  void obeyTermination();
  bool advance(Requests &requests);
  void advanceOwned();
  void carry();
  void listen();
  void obey(const Wire::Control &control);
  void tellAll(int topic, const std::string &text);
  std::string whyLost(const Wait &wait);
  std::string ownDoing() const;
  [[noreturn]] void giveUp(const Wait &wait, std::chrono::milliseconds waited,
                           bool late);
  void remember(int byRank, const std::string &because);

  Wire &wire;
  WorldOptions options;
  std::function<void(const std::string &why)> endProcess;

  mutable std::mutex mutex; ///< guards the wire and the members below
  std::vector<Owned> owned;
  std::vector<std::vector<std::byte>> spare;
  std::vector<const Wait *> waits;
  std::vector<std::optional<Doing>> answers; ///< by rank
  std::vector<bool> parted;                  ///< by rank
  int failedRank = 0;
  std::string why;

  std::atomic<bool> failed{false}, ended{false};
  /// Says whether this rank has reported, after SIGTERM, the ranks that it
  /// waits for.
  std::atomic<bool> saidWhom{false};
  /// Holds the time at which this rank noticed SIGTERM; 0 means not yet.
  std::atomic<Clock::rep> terminatedAt{0};

  /// A wire makes progress only while it is called. The thread `carrier` sends
  /// owned messages while this rank computes, and receives the failures of
  /// other ranks.
  std::condition_variable ownedCame;
  bool leaving = false;
  std::thread carrier;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_LINK_H
