//===- tcp_meeting.h - How processes find each other ------------*- C++ -*-===//
//
// Rank 0 listens where all know; the others come there, say who they are and
// where they listen themselves, and are told the same of all. Then each two
// ranks share one connection.
//
// Whoever connects begins with a Hello of fixed size. One that is none is
// closed, and so is one that does not come in time; one of another run, or of a
// rank that cannot be, is refused in words. Neither keeps the ranks from
// meeting.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_MEETING_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_MEETING_H

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/communicator/tcp_socket.h"

namespace mtplan::runtime {

/// Where the ranks of a run meet.
struct TcpStart {
  int rank = 0, ranks = 1;
  std::string job;  ///< what tells this run from all others
  std::string host; ///< of rank 0, as others reach it
  /// At which rank 0 may listen: at the first that is free. More than one only
  /// if `job` is no other run's.
  std::vector<int> ports;
  bool oneHost = false; ///< all ranks are on one; nobody else may connect
};

inline constexpr std::uint32_t kTcpVersion = 1;

/// What whoever connects says first.
struct Hello {
  enum Purpose : std::uint32_t { join = 1, link = 2 };

  std::array<char, 8> magic{'m', 't', 'p', 'l', 'a', 'n', '\r', '\n'};
  std::uint32_t version = kTcpVersion;
  std::uint32_t purpose = join;
  /// Of the run: what its `job` comes to, or what rank 0 drew for its links.
  std::array<std::uint64_t, 2> key{};
  std::int32_t rank = 0, ranks = 0;
  std::int32_t port = 0; ///< where it listens, if it joins
  std::int32_t to = 0;   ///< rank that it wants to talk to
};
static_assert(sizeof(Hello) == 48);

/// The key of those that join a run.
std::array<std::uint64_t, 2> keyOf(const std::string &job);

/// Connections to all, by rank; none to itself. Call it once on each rank.
/// \throws CommunicationError that names who did not come in time, or says why
///         this rank was refused
std::vector<Socket> meet(const TcpStart &start,
                         std::chrono::milliseconds patience);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_MEETING_H
