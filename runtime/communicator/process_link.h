//===- process_link.h - Messages between processes, awaited -----*- C++ -*-===//
//
// Awaits messages over a Wire, and names missing ranks and calls that differ.
//
// Beside the data, ranks tell each other that they have failed and ask each
// other what they wait for. A rank that has failed stops using the wire,
// because the buffers of abandoned messages are gone.
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

  /// \param endProcess  ends this process if its rank still runs `ending` after
  /// it heard of another rank's failure; none if somebody else does
  ProcessLink(Wire &wire, const WorldOptions &options,
              std::function<void(const std::string &why)> endProcess = {});
  ~ProcessLink();
  ProcessLink(const ProcessLink &) = delete;
  ProcessLink &operator=(const ProcessLink &) = delete;

  int rank() const { return wire.rank(); }
  int size() const { return wire.size(); }
  /// Returns the number of channels, which count from 0.
  int channels() const { return (wire.tags() - 1) / 2; }
  std::chrono::milliseconds patience() const { return options.patience; }

  using Requests = std::vector<Wire::Ticket>;

  enum class Traffic { group, transfer };

  /// Sends or receives at most kMessageBytes each; the memory must stay valid
  /// until it is awaited.
  void send(Requests &requests, const Rows &from, int to, Traffic traffic,
            int channel);
  void receive(Requests &requests, const Rows &to, int from, Traffic traffic,
               int channel);
  /// Sends a message that the link keeps until it has been sent.
  void sendOwned(std::vector<std::byte> message, std::int64_t bytes, int to,
                 Traffic traffic, int channel);
  /// Returns memory for sendOwned, of at least this size.
  std::vector<std::byte> memory(std::int64_t bytes);

  /// Returns once all requests are complete, and clears them. Throws, after
  /// telling all others, if nothing moves for the world's patience. Throws the
  /// failure of another rank.
  void await(Requests &requests, const std::function<std::string()> &what);

  /// Says that this rank only takes part in the end from now on, where it waits
  /// for the others without a limit.
  void end() { ended = true; }
  /// Returns once all owned messages have been sent.
  void awaitOwned(const std::function<std::string()> &what);
  /// Returns a message that no call has asked for, if there is one.
  std::optional<Wire::Stray> stray();
  static int channelOf(const Wire::Stray &stray) { return stray.tag / 2; }

  /// Waits, after all ranks have ended, until no rank has anything more to say.
  /// Returns the reason of a late failure; empty if there was none.
  std::string part();

  /// Tells all ranks why this one fails; the first reason is kept. The wire
  /// must not be used afterwards.
  void fail(const std::string &because) noexcept;
  void throwIfFailed() const;
  /// Receives what others have told, and throws if one has failed.
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
  void hear(const Wire::Told &told);
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
  /// This rank has named the ranks it waits for, after a request to end.
  std::atomic<bool> saidWhom{false};
  /// When this rank noticed it; 0: not yet.
  std::atomic<Clock::rep> terminatedAt{0};

  /// A wire moves large messages only while it is called. This thread moves
  /// owned messages while their sender computes, and listens for failures of
  /// others.
  std::condition_variable ownedCame;
  bool leaving = false;
  std::thread carrier;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_LINK_H
