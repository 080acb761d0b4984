//===- tcp_rendezvous.h - Rendezvous of processes over sockets --*- C++ -*-===//
//
// Rank 0 listens at an address that all ranks know. The other ranks connect to
// rank 0, send their rank and the port at which they listen, and receive the
// addresses of all ranks. Then each pair of ranks opens one connection.
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

struct TcpStart {
  int rank = 0, ranks = 1;
  std::string job;  ///< differs from the `job` of other runs
  std::string host; ///< host name or address of rank 0
  /// Rank 0 listens at the first free port. If there are several ports, no
  /// other run may have the same `job`.
  std::vector<int> ports;
  /// Says whether all ranks are on one host. If so, no other host may connect.
  bool oneHost = false;
};

/// Hashes `job`; ranks compare the hash to recognize their run.
std::array<std::uint64_t, 2> keyOf(const std::string &job);

/// Opens one connection between this rank and each other rank. Returns the
/// connections by rank.
/// \throws CommunicationError with the missing ranks, or with the reason why
/// rank 0 rejected this rank
std::vector<Socket> connectAll(const TcpStart &start,
                               std::chrono::milliseconds patience);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_RENDEZVOUS_H
