//===- tcp_socket.h - Sockets, and how a connection begins ------*- C++ -*-===//
//
// Sockets never block: a caller that waits states until when.
//
// A connection begins with a Hello of fixed size. A connection without a valid
// Hello, or without one in time, is closed. One of another run, or of an
// impossible rank, is rejected with a message. Neither keeps the ranks from
// meeting.
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

/// Owns a file descriptor.
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

/// The address of a listener. A host is a name or an address.
struct Endpoint {
  std::string host;
  int port = 0;
};

/// Formats an endpoint: node17:29500
std::string wordsOf(const Endpoint &endpoint);

using Until = std::chrono::steady_clock::time_point;

/// A socket, or the reason why there is none.
struct Attempt {
  Socket socket;
  std::string why;
};

/// Listens at a port.
/// \param port  0: any
/// \param here  whether only processes of this host may connect
Attempt listenAt(int port, bool here);
int portOf(const Socket &socket);

/// Tries each address of the host once.
Attempt connectTo(const Endpoint &endpoint, Until until);
/// Returns an empty socket if no connection is waiting.
Socket acceptFrom(const Socket &listener);

/// Returns the address of the other end; "" if it is gone.
std::string hostOf(const Socket &socket);
/// Returns whether an address names every host itself.
bool isLoopback(const std::string &address);

/// Returns whether all bytes were sent or received in time; otherwise the rest
/// is lost.
bool sendAll(const Socket &socket, const void *data, std::size_t bytes,
             Until until);
bool receiveAll(const Socket &socket, void *data, std::size_t bytes,
                Until until);

inline constexpr std::uint32_t kTcpVersion = 1;

/// The first message of a connection.
struct Hello {
  enum Purpose : std::uint32_t { join = 1, link = 2 };

  std::array<char, 8> magic{'m', 't', 'p', 'l', 'a', 'n', '\r', '\n'};
  std::uint32_t version = kTcpVersion;
  std::uint32_t purpose = join;
  /// Identifies the run: the hash of its `job`, or what rank 0 drew for the
  /// connections between ranks.
  std::array<std::uint64_t, 2> key{};
  std::int32_t rank = 0, ranks = 0;
  std::int32_t port = 0; ///< where a joining rank listens
  std::int32_t to = 0;   ///< the rank that it wants to reach
};
static_assert(sizeof(Hello) == 48);

/// Accepts connections until their Hello has arrived, and closes those that
/// send something else or nothing.
class Reception {
public:
  explicit Reception(Socket listener);

  int port() const { return portOf(listener); }

  struct Guest {
    Socket socket;
    Hello hello; ///< with the right magic; the listener judges the rest
  };
  /// Returns the connections whose Hello has arrived; waits a moment if there
  /// are none.
  std::vector<Guest> receive();

  /// Describes the connections that were no ranks; "" if there were none.
  std::string wordsOfStrangers() const;

private:
  struct Pending {
    Socket socket;
    Hello hello;
    std::size_t have = 0; ///< bytes received
    Until until;
  };

  void accept();
  static bool advance(Pending &one);
  void turnAway(const Pending &one);

  Socket listener;
  std::vector<Pending> pending;
  int strangers = 0;
  std::string lastStranger; ///< address of the last one
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H
