//===- wire.h - Transport between processes ---------------------*- C++ -*-===//
//
// A Wire provides nonblocking messages and short control texts between
// processes, over MPI or sockets. Messages between two ranks with one tag
// arrive in order. No function but rest() blocks. ProcessLink holds its mutex
// in all calls except rest().
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtplan::runtime {

struct Rows {
  char *base = nullptr;
  std::int64_t rows = 1;
  std::int64_t bytes = 0; ///< bytes per row
  /// Counts the bytes from the start of one row to the start of the next. The
  /// stride of a single row is unused.
  std::int64_t stride = 0;
};

/// Limits a message, in bytes, without its header.
inline constexpr std::int64_t kMessageBytes = 1 << 20;
/// Limits a control text, in bytes.
inline constexpr std::size_t kControlBytes = 2000;

class Wire {
public:
  struct Ticket {
    std::uint64_t handle = 0; ///< defined by the wire
    int peer = 0;
  };
  struct Control {
    int from = 0;
    int topic = 0;
    std::string text;
  };
  /// Holds the first bytes, the sender and the tag of a message that was never
  /// received.
  struct Stray {
    std::vector<char> message;
    int from = 0;
    int tag = 0;
  };

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns the number of tags, which count from 0.
  virtual int tags() const = 0;
  /// Returns whether several threads may call the wire, one at a time.
  virtual bool servesThreads() const = 0;

  /// Start to send or receive a message, which may be shorter than the receive
  /// buffer. The memory must stay valid until the message is complete.
  /// \throws CommunicationError if the peer cannot be reached
  virtual Ticket send(const Rows &from, int to, int tag) = 0;
  virtual Ticket receive(const Rows &to, int from, int tag) = 0;
  /// Advances all messages as far as possible without blocking.
  virtual void progress() = 0;
  /// Returns whether a message was complete at the last progress(). If so,
  /// invalidates the ticket.
  virtual bool isThrough(Ticket &ticket) = 0;

  /// Sends a copy of a control text of at most kControlBytes bytes. Control
  /// texts overtake messages.
  virtual void sendControl(int to, int topic, const std::string &text) = 0;
  virtual bool isAllControlSent() = 0;
  virtual std::optional<Control> nextControl() = 0;

  /// Returns a message that was never received, if any. All ranks must have
  /// ended.
  virtual std::optional<Stray> stray() = 0;

  /// Returns why the connection to a rank was lost, or "".
  virtual std::string whyLost(int rank) const = 0;
  /// Returns whether the process of a rank is known to have died.
  virtual bool hasDied(int rank) const = 0;

  /// Pauses, yields or sleeps, depending on the number `idle` of previous calls
  /// without progress. Returns whether this call has slept.
  virtual bool rest(int idle) const = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H
