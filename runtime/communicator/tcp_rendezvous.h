//===- tcp_rendezvous.h - Rendezvous of processes over sockets --*- C++ -*-===//
//
// The rendezvous over sockets. Rank 0 listens at an address that all ranks
// know. The others connect, say who they are and where they listen, and receive
// the same of all. Then each pair of ranks shares one connection.
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
