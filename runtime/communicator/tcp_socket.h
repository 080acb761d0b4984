//===- tcp_socket.h - Connections between processes -------------*- C++ -*-===//
//
// Sockets that never block: whoever waits for one says until when.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

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

/// Where somebody listens. A host is a name or an address.
struct Endpoint {
  std::string host;
  int port = 0;
};

/// node17:29500
std::string wordsOf(const Endpoint &endpoint);

using Until = std::chrono::steady_clock::time_point;

/// A socket, or why there is none.
struct Attempt {
  Socket socket;
  std::string why;
};

/// \param port  0: any
/// \param here  whether only processes of this host may connect
Attempt listenAt(int port, bool here);
int portOf(const Socket &socket);

/// Tries all addresses of the host, each once.
Attempt connectTo(const Endpoint &endpoint, Until until);
/// An empty socket if nobody connects now.
Socket acceptFrom(const Socket &listener);

/// Address of the other end; "" if there is none any more.
std::string hostOf(const Socket &socket);
/// Whether an address is the same for all that are on one host.
bool isLoopback(const std::string &address);

/// Whether all was sent, or came, by then; the rest is lost if not.
bool sendAll(const Socket &socket, const void *data, std::size_t bytes,
             Until until);
bool receiveAll(const Socket &socket, void *data, std::size_t bytes,
                Until until);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H
