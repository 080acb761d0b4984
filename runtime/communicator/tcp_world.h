//===- tcp_world.h - Ranks as processes over sockets ------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_TCP_WORLD_H
#define MTPLAN_RUNTIME_COMMUNICATOR_TCP_WORLD_H

#include <functional>
#include <string>

#include "runtime/communicator/communicator.h"
#include "runtime/communicator/tcp_rendezvous.h"

namespace mtplan::runtime {

/// Runs `body` as one rank of `start`. Returns why it or the rendezvous failed,
/// which the others have been told; empty if neither did. A rank that has ended
/// waits for the others without a limit.
/// \param endProcess  called from another thread if this rank still runs
/// options.ending after another has failed; none: it may go on
std::string
runTcpRank(const TcpStart &start, const WorldOptions &options,
           const std::function<void(World &)> &body,
           const std::function<void(const std::string &why)> &endProcess = {});

/// Does the same on this process. If it fails, this process and all others end
/// with the message.
void runOverTcp(const TcpStart &start, const WorldOptions &options,
                const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_TCP_WORLD_H
