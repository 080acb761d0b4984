//===- tcp.h - Ranks over sockets, in one process --*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_COMMUNICATOR_TCP_H
#define MTPLAN_TESTS_RUNTIME_COMMUNICATOR_TCP_H

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "runtime/communicator/process_world.h"

namespace mtplan::runtime {

/// Where a run of this test alone meets: no port that another process holds
/// keeps it from that.
inline TcpStart tcpStart(int ranks) {
  static std::atomic<int> runs{0};
  const int run = runs++;
  TcpStart start;
  start.ranks = ranks;
  start.job = "test " + std::to_string(getpid()) + '.' + std::to_string(run);
  start.host = "127.0.0.1";
  for (int i = 0; i < 8; ++i)
    start.ports.push_back(10000 + (getpid() * 31 + run * 8 + i * 1013) % 20000);
  start.oneHost = true;
  return start;
}

/// What each rank of a run on threads with own sockets said at its end, by
/// rank.
inline std::vector<std::string>
runOverSockets(const TcpStart &start, const WorldOptions &options,
               const std::function<void(World &)> &body) {
  std::vector<std::string> said(start.ranks);
  std::vector<std::thread> threads;
  threads.reserve(start.ranks);
  for (int rank = 0; rank < start.ranks; ++rank)
    threads.emplace_back([&, rank] {
      TcpStart mine = start;
      mine.rank = rank;
      said[rank] = runTcpRank(mine, options, body);
    });
  for (std::thread &thread : threads)
    thread.join();
  return said;
}

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_COMMUNICATOR_TCP_H
