//===- tcp_world.cpp - Ranks as processes over sockets --------------------===//

#include "runtime/communicator/tcp_world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <sys/resource.h>

#include "runtime/communicator/call.h"
#include "runtime/communicator/process_world.h"
#include "runtime/communicator/tcp_wire.h"
#include "runtime/communicator/termination.h"

namespace mtplan::runtime {
namespace {

/// Raises the limit of open files by one connection per rank.
void allowConnections(int ranks) {
  constexpr rlim_t kFiles = 512;
  const rlim_t needed = static_cast<rlim_t>(ranks) + kFiles;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// The others have ended too, or will soon.
constexpr std::chrono::seconds kClosing{2};

} // namespace

std::string
runTcpRank(const TcpStart &start, const WorldOptions &options,
           const std::function<void(World &)> &body,
           const std::function<void(const std::string &why)> &endProcess) {
  std::optional<TcpWire> wire;
  try {
    wire.emplace(start.rank, connectAll(start, std::max(options.gathering,
                                                        options.patience)));
  } catch (const CommunicationError &error) {
    return error.what();
  }
  std::string why;
  {
    ProcessLink link(*wire, options, endProcess);
    why = runOver(link, body);
    if (why.empty())
      why = link.part();
  }
  wire->close(why.empty() ? kClosing : options.ending);
  return why;
}

void runOverTcp(const TcpStart &start, const WorldOptions &options,
                const std::function<void(World &)> &body) {
  const auto end = [&](const std::string &why) {
    std::fprintf(stderr, "rank %d: %s\n", start.rank, why.c_str());
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  };
  allowConnections(start.ranks);
  listenForTermination();
  const std::string why =
      runTcpRank(start, options, body, [&](const std::string &others) {
        end(others + "; did not end within " + wordsOf(options.ending) +
            " after that");
      });
  if (!why.empty())
    end(why);
}

} // namespace mtplan::runtime
