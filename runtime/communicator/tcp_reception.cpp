//===- tcp_reception.cpp - Accepts connections of ranks -------------------===//

#include "runtime/communicator/tcp_reception.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

namespace mtplan::runtime {

namespace {

/// Time that a connection has to say who it is.
constexpr std::chrono::seconds kHelloTime{10};
/// Beyond this number of pending connections the oldest is closed.
constexpr std::size_t kMostPending = 1024;
constexpr int kMoment = 20; // milliseconds

} // namespace

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

/// Reads on. Returns whether the connection may still be a rank.
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
         (strangers == 1 ? " connection was" : " connections were") +
         " turned away that said nothing a rank says" +
         (lastStranger.empty() ? "" : ", the last from " + lastStranger);
}

} // namespace mtplan::runtime
