//===- tcp_wire.cpp - A wire over sockets ---------------------------------===//

#include "runtime/communicator/tcp_wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>
#include <thread>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/communicator/waiting.h"

namespace mtplan::runtime {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
/// Limits a valid frame, in bytes: a message and the header of its call.
constexpr std::int64_t kMostBytes = kMessageBytes + (1 << 16);
/// Limits the bytes read from one peer before the next peer's turn.
constexpr std::int64_t kTurnBytes = 1 << 22;
constexpr std::size_t kMostParts = 64;

std::int64_t bytesOf(const Rows &rows) { return rows.rows * rows.bytes; }

/// Writes the memory of `rows`, from byte `at` on, to `parts` after its first
/// `count` elements, until `parts` is full. Returns the new number of elements.
std::size_t addParts(std::span<iovec> parts, std::size_t count,
                     const Rows &rows, std::int64_t at) {
  const bool whole = rows.rows == 1 || rows.stride == rows.bytes;
  for (const std::int64_t all = bytesOf(rows);
       at < all && count < parts.size();) {
    const std::int64_t row = whole ? 0 : at / rows.bytes;
    const std::int64_t within = at - row * rows.bytes;
    const std::int64_t length = whole ? all - at : rows.bytes - within;
    parts[count++] = {rows.base + row * rows.stride + within,
                      static_cast<std::size_t>(length)};
    at += length;
  }
  return count;
}

void copyTo(const Rows &rows, std::int64_t at, const char *data,
            std::int64_t bytes) {
  std::array<iovec, kMostParts> parts;
  while (bytes > 0) {
    const std::size_t count = addParts(parts, 0, rows, at);
    for (std::size_t i = 0; i < count && bytes > 0; ++i) {
      const auto length =
          std::min(bytes, static_cast<std::int64_t>(parts[i].iov_len));
      std::memcpy(parts[i].iov_base, data, static_cast<std::size_t>(length));
      data += length;
      at += length;
      bytes -= length;
    }
  }
}

bool isTransient(int error) { return error == EAGAIN || error == EINTR; }

std::string tooLong(std::int64_t bytes, std::int64_t room) {
  return "it sent " + std::to_string(bytes) + " bytes where " +
         std::to_string(room) + " were expected";
}

const char *const kClosed = "its process has closed the connection";

} // namespace

TcpWire::TcpWire(int rank, std::vector<Socket> connections)
    : its(rank), poller(epoll_create1(EPOLL_CLOEXEC)),
      peers(connections.size()) {
  for (int peer = 0; peer < size(); ++peer) {
    Peer &one = peers[peer];
    if (peer == its)
      continue;
    one.socket = std::move(connections[peer]);
    one.buffer.resize(kBuffer);
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<std::uint32_t>(peer);
    epoll_ctl(poller, EPOLL_CTL_ADD, one.socket.number(), &event);
  }
}

TcpWire::~TcpWire() { ::close(poller); }

void TcpWire::lose(int peer, const std::string &why) {
  Peer &one = peers[peer];
  if (!one.lost.empty())
    return;
  one.lost = why;
  one.outgoing.clear();
  epoll_ctl(poller, EPOLL_CTL_DEL, one.socket.number(), nullptr);
  one.socket.close();
}

void TcpWire::watch(int peer, bool forRoom) {
  Peer &one = peers[peer];
  if (one.awaitsRoom == forRoom || !one.lost.empty())
    return;
  one.awaitsRoom = forRoom;
  epoll_event event = {};
  event.events = EPOLLIN | (forRoom ? EPOLLOUT : 0U);
  event.data.u32 = static_cast<std::uint32_t>(peer);
  epoll_ctl(poller, EPOLL_CTL_MOD, one.socket.number(), &event);
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

Wire::Ticket TcpWire::send(const Rows &from, int to, int tag) {
  const Number number = ++last;
  messages[number].rows = from;
  const FrameHeader header = {FrameHeader::kMark, tag, bytesOf(from)};
  if (to == its) {
    // A message to this rank itself is parsed as if it had arrived.
    parse(its, reinterpret_cast<const char *>(&header), sizeof(header));
    std::array<iovec, kMostParts> parts;
    for (std::int64_t at = 0; at < header.bytes && peers[its].lost.empty();) {
      const std::size_t count = addParts(parts, 0, from, at);
      for (std::size_t i = 0; i < count; ++i) {
        parse(its, static_cast<const char *>(parts[i].iov_base),
              parts[i].iov_len);
        at += static_cast<std::int64_t>(parts[i].iov_len);
      }
    }
    messages[number].through = true;
  } else {
    queue(to, {header, from, {}, number});
  }
  return {number, to};
}

void TcpWire::sendControl(int to, int topic, const std::string &text) {
  Outgoing outgoing;
  outgoing.text = text.substr(0, kControlBytes);
  outgoing.header.tag = -1 - topic;
  outgoing.header.bytes = static_cast<std::int64_t>(outgoing.text.size());
  queue(to, std::move(outgoing));
}

void TcpWire::queue(int to, Outgoing outgoing) {
  Peer &peer = peers[to];
  if (!peer.lost.empty())
    return;
  // A control text overtakes all frames except partly sent frames and earlier
  // control texts.
  auto at = peer.outgoing.end();
  if (outgoing.header.tag < 0)
    at = std::ranges::find_if(peer.outgoing, [](const Outgoing &other) {
      return other.header.tag >= 0 && other.sent == 0;
    });
  peer.outgoing.insert(at, std::move(outgoing));
  if (!peer.awaitsRoom)
    write(to);
}

void TcpWire::write(int to) {
  Peer &peer = peers[to];
  while (!peer.outgoing.empty()) {
    Outgoing &first = peer.outgoing.front();
    const std::int64_t all =
        static_cast<std::int64_t>(sizeof(FrameHeader)) + first.header.bytes;
    const ssize_t sent = writeSome(peer, first);
    if (sent < 0 && !isTransient(errno)) {
      const std::string why = std::strerror(errno); // NOLINT: safe in glibc
      read(to); // data that arrived before the failure
      lose(to, why);
      return;
    }
    if (sent < 0 && errno == EINTR)
      continue;
    first.sent += std::max<ssize_t>(sent, 0);
    if (first.sent < all) {
      if (sent < 0) {
        watch(to, true);
        return;
      }
      continue;
    }
    if (first.number != 0)
      messages[first.number].through = true;
    peer.outgoing.pop_front();
  }
  watch(to, false);
}

ssize_t TcpWire::writeSome(Peer &peer, Outgoing &outgoing) const {
  constexpr auto kHead = static_cast<std::int64_t>(sizeof(FrameHeader));
  std::array<iovec, kMostParts> parts;
  std::size_t count = 0;
  if (outgoing.sent < kHead)
    parts[count++] = {reinterpret_cast<char *>(&outgoing.header) +
                          outgoing.sent,
                      static_cast<std::size_t>(kHead - outgoing.sent)};
  const std::int64_t at = std::max<std::int64_t>(0, outgoing.sent - kHead);
  const Rows text = {outgoing.text.data(), 1, outgoing.header.bytes, 0};
  count = addParts(parts, count, outgoing.header.tag < 0 ? text : outgoing.rows,
                   at);
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sendmsg(peer.socket.number(), &message, MSG_NOSIGNAL);
}

bool TcpWire::isAllControlSent() {
  return std::ranges::none_of(peers, [](const Peer &peer) {
    return std::ranges::any_of(
        peer.outgoing, [](const Outgoing &one) { return one.header.tag < 0; });
  });
}

//===----------------------------------------------------------------------===//
// Receiving
//===----------------------------------------------------------------------===//

Wire::Ticket TcpWire::receive(const Rows &to, int from, int tag) {
  const Number number = ++last;
  Message &message = messages[number];
  message.rows = to;
  Lane &lane = peers[from].lanes[tag];
  const auto next = std::ranges::find_if(
      lane.early, [](const Early &early) { return early.taker == 0; });
  if (next == lane.early.end()) {
    lane.asked.push_back(number);
  } else if (!next->complete) {
    next->taker = number;
  } else {
    const auto bytes = static_cast<std::int64_t>(next->bytes.size());
    if (bytes > bytesOf(to)) {
      lose(from, tooLong(bytes, bytesOf(to)));
      return {number, from};
    }
    copyTo(to, 0, next->bytes.data(), bytes);
    message.through = true;
    lane.early.pop_front();
  }
  return {number, from};
}

void TcpWire::progress() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(poller, events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const int peer = static_cast<int>(events[i].data.u32);
    if (events[i].events & ~static_cast<std::uint32_t>(EPOLLOUT))
      read(peer);
    if (peers[peer].lost.empty() && (events[i].events & EPOLLOUT))
      write(peer);
  }
}

void TcpWire::read(int from) {
  Peer &peer = peers[from];
  for (std::int64_t turn = 0; turn < kTurnBytes && peer.lost.empty();) {
    const bool straight =
        peer.haveHeader == sizeof(FrameHeader) && peer.header.tag >= 0 &&
        peer.header.bytes - peer.have >= static_cast<std::int64_t>(kBuffer);
    const ssize_t got =
        straight ? readBody(peer)
                 : recv(peer.socket.number(), peer.buffer.data(), kBuffer, 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      return;
    if (got <= 0) {
      lose(from, got == 0 || errno == ECONNRESET
                     ? kClosed
                     : std::strerror(errno)); // NOLINT: safe in glibc
      return;
    }
    turn += got;
    if (straight) {
      peer.have += got;
      if (peer.have == peer.header.bytes)
        finish(from);
      continue;
    }
    if (!parse(from, peer.buffer.data(), static_cast<std::size_t>(got)) ||
        static_cast<std::size_t>(got) < kBuffer)
      return; // no more bytes are available
  }
}

/// Reads directly into the memory of the frame's body.
ssize_t TcpWire::readBody(Peer &peer) {
  std::array<iovec, kMostParts> parts;
  Rows rows;
  if (peer.number != 0) {
    rows = messages[peer.number].rows;
  } else {
    Early &early = peer.lanes[peer.header.tag].early.back();
    rows = {early.bytes.data(), 1, peer.header.bytes, 0};
  }
  std::size_t count = addParts(parts, 0, rows, peer.have);
  std::int64_t room = peer.header.bytes - peer.have;
  for (std::size_t i = 0; i < count; ++i) {
    parts[i].iov_len =
        std::min(parts[i].iov_len, static_cast<std::size_t>(room));
    room -= static_cast<std::int64_t>(parts[i].iov_len);
    if (room == 0)
      count = i + 1;
  }
  msghdr message = {};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return recvmsg(peer.socket.number(), &message, 0);
}

/// Parses received bytes. Returns false if the bytes are invalid and the peer
/// therefore counts as lost.
bool TcpWire::parse(int from, const char *data, std::size_t bytes) {
  Peer &peer = peers[from];
  while (bytes > 0) {
    std::size_t part = 0;
    if (peer.haveHeader < sizeof(FrameHeader)) {
      part = std::min(bytes, sizeof(FrameHeader) - peer.haveHeader);
      std::memcpy(reinterpret_cast<char *>(&peer.header) + peer.haveHeader,
                  data, part);
      peer.haveHeader += part;
      if (peer.haveHeader == sizeof(FrameHeader) && !begin(from))
        return false;
    } else {
      part = std::min(bytes,
                      static_cast<std::size_t>(peer.header.bytes - peer.have));
      take(from, data, static_cast<std::int64_t>(part));
    }
    data += part;
    bytes -= part;
    if (peer.haveHeader == sizeof(FrameHeader) &&
        peer.have == peer.header.bytes)
      finish(from);
  }
  return peer.lost.empty();
}

/// Chooses the memory for the body of a frame whose header has arrived. Returns
/// false if the header is invalid and the peer therefore counts as lost.
bool TcpWire::begin(int from) {
  Peer &peer = peers[from];
  const FrameHeader &header = peer.header;
  peer.have = 0;
  peer.number = 0;
  const bool isControl = header.tag < 0;
  if (header.mark != FrameHeader::kMark || header.bytes < 0 ||
      header.bytes >
          (isControl ? static_cast<std::int64_t>(kControlBytes) : kMostBytes)) {
    lose(from, "it sent an invalid message");
    return false;
  }
  if (isControl) {
    peer.text.clear();
    return true;
  }
  Lane &lane = peer.lanes[header.tag];
  if (lane.asked.empty()) {
    lane.early.push_back({std::vector<char>(header.bytes)});
    return true;
  }
  peer.number = lane.asked.front();
  const std::int64_t room = bytesOf(messages[peer.number].rows);
  if (header.bytes > room) {
    lose(from, tooLong(header.bytes, room));
    return false;
  }
  lane.asked.pop_front();
  return true;
}

void TcpWire::take(int from, const char *data, std::int64_t bytes) {
  Peer &peer = peers[from];
  if (peer.header.tag < 0)
    peer.text.append(data, static_cast<std::size_t>(bytes));
  else if (peer.number != 0)
    copyTo(messages[peer.number].rows, peer.have, data, bytes);
  else
    std::memcpy(peer.lanes[peer.header.tag].early.back().bytes.data() +
                    peer.have,
                data, static_cast<std::size_t>(bytes));
  peer.have += bytes;
}

void TcpWire::finish(int from) {
  Peer &peer = peers[from];
  peer.haveHeader = 0;
  if (peer.header.tag < 0) {
    controls.push_back({from, -1 - peer.header.tag, std::move(peer.text)});
    return;
  }
  if (peer.number != 0) {
    messages[peer.number].through = true;
    return;
  }
  Lane &lane = peer.lanes[peer.header.tag];
  Early &early = lane.early.back();
  early.complete = true;
  if (early.taker == 0)
    return;
  Message &message = messages[early.taker];
  if (peer.header.bytes > bytesOf(message.rows)) {
    lose(from, tooLong(peer.header.bytes, bytesOf(message.rows)));
    return;
  }
  copyTo(message.rows, 0, early.bytes.data(), peer.header.bytes);
  message.through = true;
  lane.early.pop_back(); // all earlier messages have been received
}

bool TcpWire::isThrough(Ticket &ticket) {
  const auto found = messages.find(ticket.handle);
  if (found == messages.end() || !found->second.through)
    return false;
  messages.erase(found);
  return true;
}

std::optional<Wire::Control> TcpWire::nextControl() {
  if (controls.empty())
    return std::nullopt;
  Control control = std::move(controls.front());
  controls.pop_front();
  return control;
}

std::optional<Wire::Stray> TcpWire::stray() {
  progress();
  for (int from = 0; from < size(); ++from)
    for (auto &[tag, lane] : peers[from].lanes)
      if (!lane.early.empty())
        return Stray{lane.early.front().bytes, from, tag};
  return std::nullopt;
}

bool TcpWire::rest(int idle) const {
  constexpr int kIdleUntilYield = 4, kIdleUntilSleep = 40;
  if (idle < kIdleUntilYield) {
    pauseProcessor();
    return false;
  }
  if (idle < kIdleUntilSleep) {
    std::this_thread::yield();
    return false;
  }
  // The wait is short, because another thread of this rank may receive the
  // message that the caller waits for.
  pollfd any = {poller, POLLIN, 0};
  const timespec most = {0, 500'000};
  ppoll(&any, 1, &most, nullptr);
  return true;
}

void TcpWire::close(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  for (const Peer &peer : peers)
    if (peer.socket)
      shutdown(peer.socket.number(), SHUT_WR);
  std::vector<char> waste(kBuffer);
  for (int peer = 0; peer < size(); ++peer)
    while (peers[peer].socket &&
           receiveAll(peers[peer].socket, waste.data(), waste.size(), until)) {
    }
  for (int peer = 0; peer < size(); ++peer)
    lose(peer, "the connection was closed here");
}

} // namespace mtplan::runtime
