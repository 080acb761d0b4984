//===- tcp_socket.h - Non-blocking sockets ----------------------*- C++ -*-===//
//
// Sockets that never block: a caller that waits states until when.
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

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_SOCKET_H
