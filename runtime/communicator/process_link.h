//===- process_link.h - Patience between processes --------------*- C++ -*-===//
//
// Messages over a Wire, awaited: who does not come is named, and so is what
// does not match.
//
// Beside the data, ranks tell each other that they have failed, and ask each
// other what they wait for. Once a rank has failed it makes no more use of the
// wire, since buffers of messages that were given up are gone.
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

  /// \param endProcess  ends this process, whose rank goes on `ending` after it
  ///                    has heard of another's failure; none: somebody else
  ///                    does
  ProcessLink(Wire &wire, const WorldOptions &options,
              std::function<void(const std::string &why)> endProcess = {});
  ~ProcessLink();
  ProcessLink(const ProcessLink &) = delete;
  ProcessLink &operator=(const ProcessLink &) = delete;

  int rank() const { return wire.rank(); }
  int size() const { return wire.size(); }
  /// Channels that there are, from 0.
  int channels() const { return (wire.tags() - 1) / 2; }
  std::chrono::milliseconds patience() const { return options.patience; }

  using Requests = std::vector<Wire::Ticket>;

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
  /// A message that nobody has asked for.
  std::optional<Wire::Stray> stray();
  static int channelOf(const Wire::Stray &stray) { return stray.tag / 2; }

  /// After all have ended: returns once nobody has anything more to say, with
  /// why if somebody has failed at last; empty if nobody did.
  std::string part();

  /// Tells all; the first reason stands. No use of the wire after this.
  void fail(const std::string &because) noexcept;
  void throwIfFailed() const;
  /// Hears what others have told, and throws the echo if one has failed.
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

  mutable std::mutex mutex; ///< of the wire and what follows
  std::vector<Owned> owned;
  std::vector<std::vector<std::byte>> spare;
  std::vector<const Wait *> waits;
  std::vector<std::optional<Doing>> answers; ///< by rank
  std::vector<bool> parted;                  ///< by rank
  int failedRank = 0;
  std::string why;

  std::atomic<bool> failed{false}, ended{false};
  std::atomic<bool> saidWhom{false}; ///< this rank waits for, once told to end
  std::atomic<Clock::rep> terminatedAt{0}; ///< when this rank saw it; 0: not

  /// A wire moves large messages only while it is called; what is owned is to
  /// arrive while its sender computes. And others' failures are to be heard.
  std::condition_variable ownedCame;
  bool leaving = false;
  std::thread carrier;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_PROCESS_LINK_H
