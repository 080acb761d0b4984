//===- tcp_socket.h - Sockets and the opening handshake ---------*- C++ -*-===//
//
// Sockets are nonblocking; functions that wait have a deadline. A connection
// begins with a Hello of fixed size. A connection that sends no valid Hello in
// time is closed. A connection of another run or of an invalid rank is rejected
// with a message. Such connections do not disturb the rendezvous.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::runtime {

class Socket {
public:
  Socket() = default;
  explicit Socket(int number) : its(number) {}
  ~Socket() { close(); }
  Socket(Socket &&other) noexcept : its(std::exchange(other.its, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(its, other.its);
    return *this;
  }

  int number() const { return its; }
  explicit operator bool() const { return its >= 0; }
  void close();

private:
  int its = -1;
};

/// Holds the address of a listener; `host` is a name or an address.
struct Endpoint {
  std::string host;
  int port = 0;
};

/// Formats an endpoint: node17:29500
std::string wordsOf(const Endpoint &endpoint);

using Until = std::chrono::steady_clock::time_point;

/// Holds a socket, or the reason why it could not be opened.
struct Attempt {
  Socket socket;
  std::string why;
};

/// Opens a listening socket. Port 0 means any free port. With `here`, only
/// processes of this host may connect.
Attempt listenAt(int port, bool here);
int portOf(const Socket &socket);

Attempt connectTo(const Endpoint &endpoint, Until until);
/// Accepts a connection; returns an empty socket if none is waiting.
Socket acceptFrom(const Socket &listener);

/// Returns the address of the other end, or "" if the other end has closed the
/// connection.
std::string hostOf(const Socket &socket);
bool isLoopback(const std::string &address);

/// Send or receive all bytes before `until`. Return whether all bytes were
/// transferred; if not, the connection is unusable.
bool sendAll(const Socket &socket, const void *data, std::size_t bytes,
             Until until);
bool receiveAll(const Socket &socket, void *data, std::size_t bytes,
                Until until);

inline constexpr std::uint32_t kTcpVersion = 1;

struct Hello {
  enum Purpose : std::uint32_t { join = 1, link = 2 };

  std::array<char, 8> magic{'m', 't', 'p', 'l', 'a', 'n', '\r', '\n'};
  std::uint32_t version = kTcpVersion;
  std::uint32_t purpose = join;
  /// The key is keyOf(job) for connections to rank 0. Other connections use a
  /// random number that rank 0 has sent to the ranks.
  std::array<std::uint64_t, 2> key{};
  std::int32_t rank = 0, ranks = 0;
  std::int32_t port = 0; ///< port at which the sender listens
  std::int32_t to = 0;   ///< intended receiver
};
static_assert(sizeof(Hello) == 48);

/// Accepts connections and reads their Hello. Closes all connections that send
/// something else or nothing.
class Reception {
public:
  explicit Reception(Socket listener);

  int port() const { return portOf(listener); }

  struct Guest {
    Socket socket;
    Hello hello; ///< only `magic` has been checked
  };
  /// Returns the connections whose Hello has arrived, after waiting up to 20
  /// ms.
  std::vector<Guest> receive();

  /// Describes the connections that were closed without a valid Hello. Returns
  /// "" if there are none.
  std::string wordsOfStrangers() const;

private:
  struct Pending {
    Socket socket;
    Hello hello;
    std::size_t have = 0; ///< received bytes of `hello`
    Until until;
  };

  void accept();
  static bool advance(Pending &one);
  void turnAway(const Pending &one);

  Socket listener;
  std::vector<Pending> pending;
  int strangers = 0;
  std::string lastStranger; ///< address
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H
