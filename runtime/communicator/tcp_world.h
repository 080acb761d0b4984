//===- tcp_world.h - Ranks as processes that meet over sockets --*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_WORLD_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_WORLD_H

#include <functional>
#include <string>

#include "runtime/communicator/communicator.h"
#include "runtime/communicator/tcp_meeting.h"

namespace mtplan::runtime {

/// Runs `body` as one rank of `start`. Returns why it, or the meeting, did not
/// end well, which the others have been told; empty if it did. A rank that has
/// ended waits for the others as long as they take.
/// \param endProcess  called from another thread if this rank has gone on for
///                    options.ending after another failed; none: it may go on
std::string
runTcpRank(const TcpStart &start, const WorldOptions &options,
           const std::function<void(World &)> &body,
           const std::function<void(const std::string &why)> &endProcess = {});

/// The same on this process. If it fails the process ends with what it said,
/// and so do the others.
void runOverTcp(const TcpStart &start, const WorldOptions &options,
                const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_WORLD_H
