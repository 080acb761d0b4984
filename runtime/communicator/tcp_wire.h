//===- tcp_wire.h - A wire over sockets -------------------------*- C++ -*-===//
//
// Each pair of ranks has one connection. A message is a frame: a header and the
// bytes. The bytes are read into the receiver's memory if the receiver already
// waits, and are buffered otherwise. After an invalid frame or a broken
// connection the rank at the other end counts as lost.
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

struct FrameHeader {
  static constexpr std::uint32_t kMark = 0x6d74702e;

  std::uint32_t mark = kMark;
  std::int32_t tag = 0; ///< -1 - topic if it is a control text
  std::int64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 16);

class TcpWire final : public Wire {
public:
  /// \param connections  sockets by rank; empty for this rank
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

  void sendControl(int to, int topic, const std::string &text) override;
  bool isAllControlSent() override;
  std::optional<Control> nextControl() override;
  std::optional<Stray> stray() override;

  std::string whyLost(int rank) const override { return peers[rank].lost; }
  bool hasDied(int rank) const override { return !peers[rank].lost.empty(); }
  bool rest(int idle) const override;

  /// Closes all connections. The wire sends nothing more, and discards received
  /// bytes until the other ranks have closed too, for at most `most`. Therefore
  /// the other ranks still receive everything that was sent before.
  void close(std::chrono::milliseconds most);

private:
  using Number = std::uint64_t;
  struct Message {
    Rows rows;
    bool through = false;
  };
  struct Outgoing {
    FrameHeader header;
    Rows rows;
    std::string text;      ///< contents of a control text
    Number number = 0;     ///< key in `messages`; 0: a control text
    std::int64_t sent = 0; ///< bytes, including the header
  };
  /// Holds a message that began to arrive before its receive was called.
  struct Early {
    std::vector<char> bytes;
    bool complete = false;
    Number taker = 0; ///< key in `messages` of its receive; 0: not yet called
  };
  struct Lane {
    /// Holds the receives whose messages have not begun to arrive.
    std::deque<Number> asked;
    std::deque<Early> early;
  };
  struct Peer {
    Socket socket;
    std::string lost; ///< why the peer is lost; "" if the peer is not lost
    std::deque<Outgoing> outgoing;
    bool awaitsRoom = false; ///< its socket's send buffer is full

    std::vector<char> buffer; ///< received bytes
    FrameHeader header;       ///< header of the frame being received
    std::size_t haveHeader = 0;
    std::int64_t have = 0; ///< received bytes of the frame's body
    /// Holds the key in `messages` of the receive for the frame being received;
    /// 0 if the receive is not yet called, or for a control text.
    Number number = 0;
    std::string text;          ///< received bytes of a control text
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
  std::deque<Control> controls;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_WIRE_H
