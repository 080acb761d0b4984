//===- tcp_socket.cpp - Sockets and the opening handshake -----------------===//

#include "runtime/communicator/tcp_socket.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {
namespace {

/// Limits the time until the Hello of a new connection has arrived.
constexpr std::chrono::seconds kHelloTime{10};
/// Limits the number of connections without a Hello. If there are more, the
/// oldest is closed.
constexpr std::size_t kMostPending = 1024;
constexpr int kMoment = 20; // milliseconds
constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

std::string errorText(int number) {
  return std::strerror(number); // NOLINT(concurrency-mt-unsafe): safe in glibc
}

void switchOn(const Socket &socket, int level, int option, int value = 1) {
  setsockopt(socket.number(), level, option, &value, sizeof(value));
}

/// Returns whether `events` occur before `until` and before SIGTERM.
bool awaitEvents(const Socket &socket, short events, Until until) {
  constexpr int kTurn = 50; // milliseconds
  do {
    pollfd one = {socket.number(), events, 0};
    const int ready = poll(&one, 1, kTurn);
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return false;
  } while (std::chrono::steady_clock::now() < until && !isTerminated());
  return false;
}

Attempt listenOn(const sockaddr *address, socklen_t length) {
  Attempt attempt;
  attempt.socket = Socket(socket(address->sa_family, kKind, 0));
  if (attempt.socket) {
    // SO_REUSEADDR lets a restarted run use its port again at once.
    switchOn(attempt.socket, SOL_SOCKET, SO_REUSEADDR);
    if (address->sa_family == AF_INET6)
      switchOn(attempt.socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(attempt.socket.number(), address, length) == 0 &&
        listen(attempt.socket.number(), SOMAXCONN) == 0)
      return attempt;
  }
  attempt.why = errorText(errno);
  attempt.socket.close();
  return attempt;
}

Attempt connectOnce(const addrinfo &to, Until until) {
  Attempt attempt;
  attempt.socket = Socket(socket(to.ai_family, kKind, 0));
  if (!attempt.socket) {
    attempt.why = errorText(errno);
    return attempt;
  }
  int error = 0;
  if (connect(attempt.socket.number(), to.ai_addr, to.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      error = ETIMEDOUT;
      socklen_t length = sizeof(error);
      if (awaitEvents(attempt.socket, POLLOUT, until))
        getsockopt(attempt.socket.number(), SOL_SOCKET, SO_ERROR, &error,
                   &length);
    }
  }
  if (error != 0) {
    attempt.why = errorText(error);
    attempt.socket.close();
  } else {
    switchOn(attempt.socket, IPPROTO_TCP, TCP_NODELAY);
  }
  return attempt;
}

/// Calls move(offset), which returns like send or recv, until `bytes` bytes are
/// transferred. Returns false after an error or at `until`.
template <typename Move>
bool moveAll(const Socket &socket, std::size_t bytes, short events, Until until,
             const Move &move) {
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t moved = move(at);
    if (moved > 0) {
      at += static_cast<std::size_t>(moved);
      continue;
    }
    if (moved == 0 || (errno != EAGAIN && errno != EINTR) ||
        !awaitEvents(socket, events, until))
      return false;
  }
  return true;
}

} // namespace

void Socket::close() {
  if (its >= 0)
    ::close(std::exchange(its, -1));
}

std::string wordsOf(const Endpoint &endpoint) {
  const bool wide = endpoint.host.find(':') != std::string::npos; // IPv6
  return (wide ? '[' + endpoint.host + ']' : endpoint.host) + ':' +
         std::to_string(endpoint.port);
}

Attempt listenAt(int port, bool here) {
  if (!here) {
    sockaddr_in6 wide = {};
    wide.sin6_family = AF_INET6;
    wide.sin6_addr = in6addr_any;
    wide.sin6_port = htons(static_cast<std::uint16_t>(port));
    Attempt both =
        listenOn(reinterpret_cast<const sockaddr *>(&wide), sizeof(wide));
    if (both.socket)
      return both;
  }
  sockaddr_in narrow = {};
  narrow.sin_family = AF_INET;
  narrow.sin_addr.s_addr = htonl(here ? INADDR_LOOPBACK : INADDR_ANY);
  narrow.sin_port = htons(static_cast<std::uint16_t>(port));
  return listenOn(reinterpret_cast<const sockaddr *>(&narrow), sizeof(narrow));
}

int portOf(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  getsockname(socket.number(), reinterpret_cast<sockaddr *>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6 &>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in &>(address).sin_port);
}

Attempt connectTo(const Endpoint &endpoint, Until until) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  const int fault =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(),
                  &hints, &found);
  Attempt attempt;
  if (fault != 0) {
    attempt.why = gai_strerror(fault);
    return attempt;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo *)> all(found,
                                                            freeaddrinfo);
  for (const addrinfo *one = found; one && !attempt.socket; one = one->ai_next)
    attempt = connectOnce(*one, until);
  return attempt;
}

Socket acceptFrom(const Socket &listener) {
  Socket socket(accept4(listener.number(), nullptr, nullptr,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket)
    switchOn(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

std::string hostOf(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  char text[NI_MAXHOST] = {};
  if (getpeername(socket.number(), reinterpret_cast<sockaddr *>(&address),
                  &length) != 0 ||
      getnameinfo(reinterpret_cast<const sockaddr *>(&address), length, text,
                  sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  const std::string host = text, mapped = "::ffff:";
  const bool narrow = host.starts_with(mapped) &&
                      host.find('.') != std::string::npos; // IPv4 over IPv6
  return narrow ? host.substr(mapped.size()) : host;
}

bool isLoopback(const std::string &address) {
  return address.starts_with("127.") || address == "::1";
}

bool sendAll(const Socket &socket, const void *data, std::size_t bytes,
             Until until) {
  return moveAll(socket, bytes, POLLOUT, until, [&](std::size_t at) {
    return send(socket.number(), static_cast<const char *>(data) + at,
                bytes - at, MSG_NOSIGNAL);
  });
}

bool receiveAll(const Socket &socket, void *data, std::size_t bytes,
                Until until) {
  return moveAll(socket, bytes, POLLIN, until, [&](std::size_t at) {
    return recv(socket.number(), static_cast<char *>(data) + at, bytes - at, 0);
  });
}

Reception::Reception(Socket itsListener) : listener(std::move(itsListener)) {}

std::vector<Reception::Guest> Reception::receive() {
  std::vector<pollfd> polled = {{listener.number(), POLLIN, 0}};
  for (const Pending &one : pending)
    polled.push_back({one.socket.number(), POLLIN, 0});
  poll(polled.data(), polled.size(), kMoment);
  accept();
  std::vector<Guest> guests;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(pending, [&](Pending &one) {
    const bool open = advance(one);
    if (open && one.have == sizeof(Hello)) {
      guests.push_back({std::move(one.socket), one.hello});
      return true;
    }
    if (open && now < one.until)
      return false;
    turnAway(one);
    return true;
  });
  return guests;
}

void Reception::accept() {
  while (Socket socket = acceptFrom(listener)) {
    if (pending.size() == kMostPending) {
      turnAway(pending.front());
      pending.erase(pending.begin());
    }
    Pending one;
    one.socket = std::move(socket);
    one.until = std::chrono::steady_clock::now() + kHelloTime;
    pending.push_back(std::move(one));
  }
}

/// Reads available bytes. Returns false if the connection is closed or its
/// magic number is wrong.
bool Reception::advance(Pending &one) {
  const auto magic = Hello().magic;
  for (;;) {
    char *const to = reinterpret_cast<char *>(&one.hello);
    const ssize_t got = recv(one.socket.number(), to + one.have,
                             sizeof(Hello) - one.have, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      return true;
    if (got <= 0)
      return false;
    one.have += static_cast<std::size_t>(got);
    if (std::memcmp(to, magic.data(), std::min(one.have, magic.size())) != 0)
      return false;
    if (one.have == sizeof(Hello))
      return true;
  }
}

void Reception::turnAway(const Pending &one) {
  ++strangers;
  lastStranger = hostOf(one.socket);
}

std::string Reception::wordsOfStrangers() const {
  if (strangers == 0)
    return {};
  return std::to_string(strangers) +
         (strangers == 1 ? " connection" : " connections") +
         " without a rank's greeting " + (strangers == 1 ? "was" : "were") +
         " rejected" +
         (lastStranger.empty() ? "" : ", the last from " + lastStranger);
}

} // namespace mtplan::runtime
