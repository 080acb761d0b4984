//===- wire.h - Transport between processes ---------------------*- C++ -*-===//
//
// A ProcessLink needs two services of MPI or of sockets: messages that are
// started and polled, in order between two ranks with one tag, and short
// control texts. No call here waits. The link calls all but rest() with its
// mutex held.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtplan::runtime {

/// Rows of bytes in memory.
struct Rows {
  char *base = nullptr;
  std::int64_t rows = 1;
  std::int64_t bytes = 0; ///< per row
  /// From one row to the next; unused for a single row.
  std::int64_t stride = 0;
};

/// The largest message, not counting its header.
inline constexpr std::int64_t kMessageBytes = 1 << 20;
/// The largest control text.
inline constexpr std::size_t kToldBytes = 2000;

class Wire {
public:
  /// A message in flight, with its peer.
  struct Ticket {
    std::uint64_t handle = 0; ///< defined by the wire
    int peer = 0;
  };
  /// A control text from another rank.
  struct Told {
    int from = 0;
    int topic = 0;
    std::string text;
  };
  /// A message that no call has asked for: its first bytes, its sender and its
  /// tag.
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

  /// Starts a message; its memory must stay valid until it is complete. A
  /// message may be shorter than the buffer it is received in.
  /// \throws CommunicationError if the peer cannot be reached
  virtual Ticket send(const Rows &from, int to, int tag) = 0;
  virtual Ticket receive(const Rows &to, int from, int tag) = 0;
  /// Moves all messages that can be moved.
  virtual void progress() = 0;
  /// Returns whether a message was complete at the last progress(). Its ticket
  /// is invalid then.
  virtual bool isThrough(Ticket &ticket) = 0;

  /// Sends a control text of at most kToldBytes, which the wire keeps until
  /// then. Texts overtake messages.
  virtual void tell(int to, int topic, const std::string &text) = 0;
  /// Returns whether all control texts have been sent.
  virtual bool isAllTold() = 0;
  virtual std::optional<Told> hear() = 0;

  /// Returns a message that was never asked for. Call this after all ranks have
  /// ended.
  virtual std::optional<Stray> stray() = 0;

  /// Returns why a rank can send nothing more; empty if it can.
  virtual std::string whyLost(int rank) const = 0;
  /// Returns whether the process of a rank has died; false if it cannot be
  /// observed.
  virtual bool hasDied(int rank) const = 0;

  /// Yields to other threads, for longer the longer nothing has moved (`idle`
  /// turns). Returns whether the caller has slept.
  virtual bool rest(int idle) const = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H
