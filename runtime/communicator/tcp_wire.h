//===- tcp_wire.h - Messages over sockets -----------------------*- C++ -*-===//
//
// One connection between each two ranks. A message is a frame: a header and
// its bytes, straight from and to the callers' memory where they wait for it
// already. What comes before it is asked for is kept. Frames that are none, and
// connections that break, lose the rank at their other end.
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

/// What stands before the bytes of a message.
struct FrameHeader {
  static constexpr std::uint32_t kMark = 0x6d74702e;

  std::uint32_t mark = kMark;
  std::int32_t tag = 0; ///< -1, -2, ...: something told, of topic 0, 1, ...
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

  /// The end: nothing more is sent, and what the others still send is thrown
  /// away until they have ended too, or for `most`. So nothing is lost to them
  /// that was sent before.
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
    std::string text;      ///< if it is told
    Number number = 0;     ///< of its message; 0: none
    std::int64_t sent = 0; ///< bytes, of the header too
  };
  /// What has come, or begun to come, before it was asked for.
  struct Early {
    std::vector<char> bytes;
    bool complete = false;
    Number taker = 0; ///< who asked since; 0: nobody
  };
  struct Lane {
    std::deque<Number> asked; ///< only while nothing is early
    std::deque<Early> early;
  };
  struct Peer {
    Socket socket;
    std::string lost; ///< why; "": it is not
    std::deque<Outgoing> outgoing;
    bool awaitsRoom = false; ///< to send on

    std::vector<char> buffer; ///< of bytes received
    FrameHeader header;       ///< of the frame that comes
    std::size_t haveHeader = 0;
    std::int64_t have = 0;     ///< bytes of its body
    Number number = 0;         ///< whose it is; 0: early, or told
    std::string text;          ///< if it is told
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
