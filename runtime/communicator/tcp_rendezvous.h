//===- tcp_rendezvous.h - Rendezvous of processes over sockets --*- C++ -*-===//
//
// The rendezvous over sockets. Rank 0 listens at an address that all ranks
// know. The others connect, say who they are and where they listen, and receive
// the same of all. Then each pair of ranks shares one connection.
//
// A connection begins with a Hello of fixed size. A connection without a valid
// Hello, or without one in time, is closed. One of another run, or of an
// impossible rank, is rejected with a message. Neither keeps the ranks from
// meeting.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_RENDEZVOUS_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_RENDEZVOUS_H

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/communicator/tcp_socket.h"

namespace mtplan::runtime {

/// The rendezvous of a run.
struct TcpStart {
  int rank = 0, ranks = 1;
  std::string job;  ///< identifies this run among all others
  std::string host; ///< of rank 0, as others reach it
  /// Ports at which rank 0 may listen; it takes the first free one. More than
  /// one only if no other run has the same `job`.
  std::vector<int> ports;
  /// All ranks are on one host, and no other host may connect.
  bool oneHost = false;
};

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

/// Returns the key of the ranks that join a run.
std::array<std::uint64_t, 2> keyOf(const std::string &job);

/// Returns connections to all ranks, by rank; none to itself. Call it once on
/// each rank.
/// \throws CommunicationError that names the ranks that are missing, or says
/// why this rank was rejected
std::vector<Socket> connectAll(const TcpStart &start,
                               std::chrono::milliseconds patience);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_RENDEZVOUS_H
