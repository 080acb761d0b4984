//===- wire.h - Messages between processes ----------------------*- C++ -*-===//
//
// What a ProcessLink asks of MPI, or of sockets: messages that are started and
// looked after, in order between two ranks of one tag, and beside them short
// texts that ranks tell each other. Nothing here waits. The link calls all but
// rest() with its mutex held.
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
  std::int64_t bytes = 0;  ///< of a row
  std::int64_t stride = 0; ///< from one to the next; unread of a single row
};

/// What may be sent as one message, beside a header.
inline constexpr std::int64_t kMessageBytes = 1 << 20;
/// What may be told.
inline constexpr std::size_t kToldBytes = 2000;

class Wire {
public:
  /// A message that is under way, with its other end.
  struct Ticket {
    std::uint64_t handle = 0; ///< the wire's own
    int peer = 0;
  };
  /// Text from another rank.
  struct Told {
    int from = 0;
    int topic = 0;
    std::string text;
  };
  /// A message that nobody has asked for: its first bytes, and who sent it
  /// where.
  struct Stray {
    std::vector<char> message;
    int from = 0;
    int tag = 0;
  };

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Tags that there are, from 0.
  virtual int tags() const = 0;
  /// Whether it may be called from several threads, one at a time.
  virtual bool servesThreads() const = 0;

  /// Starts a message; its memory stays as it is until it is through. A message
  /// may be shorter than what it is received in.
  /// \throws CommunicationError if the other cannot be reached
  virtual Ticket send(const Rows &from, int to, int tag) = 0;
  virtual Ticket receive(const Rows &to, int from, int tag) = 0;
  /// Moves what can be moved.
  virtual void progress() = 0;
  /// Whether a message is through, as of the last progress(); then its ticket
  /// is worth nothing any more.
  virtual bool isThrough(Ticket &ticket) = 0;

  /// At most kToldBytes, kept until they are gone; overtakes messages.
  virtual void tell(int to, int topic, const std::string &text) = 0;
  /// Whether all that was told is on its way.
  virtual bool isAllTold() = 0;
  virtual std::optional<Told> hear() = 0;

  /// Once all have ended.
  virtual std::optional<Stray> stray() = 0;

  /// Why nothing more comes from a rank; empty if something may.
  virtual std::string whyLost(int rank) const = 0;
  /// Whether the process of a rank has died; of one that cannot be seen nobody
  /// knows: false.
  virtual bool hasDied(int rank) const = 0;

  /// Lets others run, the more the longer (`idle` turns) nothing has moved.
  /// Returns whether the caller has slept.
  virtual bool rest(int idle) const = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_WIRE_H
