//===- tcp_wire.h - A wire over sockets -------------------------*- C++ -*-===//
//
// One connection between each pair of ranks. A message is a frame: a header and
// its bytes, straight from and to the callers' memory if the receiver already
// waits. Frames that arrive before they are asked for are kept. Invalid frames
// and broken connections lose the rank at the other end.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_WIRE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_WIRE_H

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "runtime/communicator/tcp_socket.h"
#include "runtime/communicator/wire.h"

namespace mtplan::runtime {

/// Precedes the bytes of a message.
struct FrameHeader {
  static constexpr std::uint32_t kMark = 0x6d74702e;

  std::uint32_t mark = kMark;
  std::int32_t tag = 0; ///< -1, -2, ...: a text on topic 0, 1, ...
  std::int64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 16);

class TcpWire final : public Wire {
public:
  /// \param connections  by rank; none to itself
  TcpWire(int rank, std::vector<Socket> connections);
  ~TcpWire() override;
  TcpWire(const TcpWire &) = delete;
  TcpWire &operator=(const TcpWire &) = delete;

  int rank() const override { return its; }
  int size() const override { return static_cast<int>(peers.size()); }
  int tags() const override { return 1 << 30; }
  bool servesThreads() const override { return true; }

  Ticket send(const Rows &from, int to, int tag) override;
  Ticket receive(const Rows &to, int from, int tag) override;
  void progress() override;
  bool isThrough(Ticket &ticket) override;

  void tell(int to, int topic, const std::string &text) override;
  bool isAllTold() override;
  std::optional<Told> hear() override;
  std::optional<Stray> stray() override;

  std::string whyLost(int rank) const override { return peers[rank].lost; }
  bool hasDied(int rank) const override { return !peers[rank].lost.empty(); }
  bool rest(int idle) const override;

  /// Ends the wire: sends nothing more, and discards what the others send until
  /// they have ended too, or for at most `most`. Nothing that was sent before
  /// is lost.
  void close(std::chrono::milliseconds most);

private:
  using Number = std::uint64_t;
  /// A message of a caller.
  struct Message {
    Rows rows;
    bool through = false;
  };
  struct Outgoing {
    FrameHeader header;
    Rows rows;
    std::string text;      ///< of a told text
    Number number = 0;     ///< of its message; 0: none
    std::int64_t sent = 0; ///< bytes, including the header
  };
  /// A message that has arrived, or begun to arrive, before it was asked for.
  struct Early {
    std::vector<char> bytes;
    bool complete = false;
    Number taker = 0; ///< who has asked since; 0: nobody
  };
  struct Lane {
    std::deque<Number> asked; ///< only while nothing has arrived early
    std::deque<Early> early;
  };
  struct Peer {
    Socket socket;
    std::string lost; ///< why; "": it is not
    std::deque<Outgoing> outgoing;
    bool awaitsRoom = false; ///< until the socket accepts more

    std::vector<char> buffer; ///< received bytes
    FrameHeader header;       ///< of the frame that arrives
    std::size_t haveHeader = 0;
    std::int64_t have = 0;     ///< bytes of its body
    Number number = 0;         ///< the receiving message; 0: early, or a text
    std::string text;          ///< of a told text
    std::map<int, Lane> lanes; ///< by tag
  };

  void lose(int peer, const std::string &why);
  void watch(int peer, bool forRoom);
  void queue(int to, Outgoing outgoing);
  void write(int to);
  ssize_t writeSome(Peer &peer, Outgoing &outgoing) const;
  void read(int from);
  ssize_t readBody(Peer &peer);
  bool parse(int from, const char *data, std::size_t bytes);
  bool begin(int from);
  void take(int from, const char *data, std::int64_t bytes);
  void finish(int from);

  int its;
  int poller = -1;
  std::vector<Peer> peers; ///< by rank
  std::unordered_map<Number, Message> messages;
  Number last = 0;
  std::deque<Told> heard;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_WIRE_H
