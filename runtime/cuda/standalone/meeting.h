//===- meeting.h - Rendezvous of stand-alone processes ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_MEETING_H
#define MTPLAN_RUNTIME_CUDA_STANDALONE_MEETING_H

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace mtplan::runtime::cuda {

struct Process {
  int rank = 0, ranks = 1, device = 0;
  bool isAlone = true; ///< not started by a launcher
};

/// Returns the rank that torchrun, Open MPI, MPICH or Slurm has set in the
/// environment. SLURM_PROCID is also set in the script that calls srun, but
/// SLURM_STEP_NUM_TASKS is set only in tasks of srun. A task that is alone in
/// its Slurm step counts as started without a launcher.
inline Process thisProcess() {
  const char *const launchers[][3] = {
      {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}};
  for (const auto &[rank, ranks, device] : launchers)
    if (const char *own = std::getenv(rank), *all = std::getenv(ranks);
        own && all) {
      if (rank == std::string("SLURM_PROCID") && std::atoi(all) == 1)
        return {};
      const char *local = std::getenv(device);
      return {std::atoi(own), std::atoi(all), local ? std::atoi(local) : 0,
              false};
    }
  return {};
}

/// Returns the index of the process's device among the visible devices. A
/// process to which CUDA_VISIBLE_DEVICES shows a single device uses that
/// device.
/// \throws std::runtime_error if the process would have no device of its own
inline int deviceOf(const Process &process, int devices) {
  if (devices == 1 && std::getenv("CUDA_VISIBLE_DEVICES"))
    return 0;
  if (process.device >= devices)
    throw std::runtime_error(
        "rank " + std::to_string(process.rank) + " has local rank " +
        std::to_string(process.device) + ", but sees " +
        std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs") +
        ": start at most " + std::to_string(devices) +
        (devices == 1 ? " rank" : " ranks") +
        " per host, or give each rank its own GPU with CUDA_VISIBLE_DEVICES");
  return process.device;
}

struct MeetingPlace {
  std::string host, port;
};

/// Returns the address at which rank 0 listens.
inline MeetingPlace meetingPlace() {
  const char *address = std::getenv("MASTER_ADDR");
  const char *given = std::getenv("MASTER_PORT");
  return {address ? address : "127.0.0.1",
          std::to_string((given ? std::atoi(given) : 29500) + 1)};
}

inline std::runtime_error systemError(const std::string &what) {
  return std::runtime_error(what + ": " + std::strerror(errno));
}

/// Looks up the addresses of rank 0 or, if `here`, the addresses at which this
/// machine can listen.
class Addresses {
public:
  explicit Addresses(const MeetingPlace &place, bool here = false) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = here ? AI_PASSIVE : 0;
    const int fault = getaddrinfo(here ? nullptr : place.host.c_str(),
                                  place.port.c_str(), &hints, &first);
    if (fault != 0)
      throw std::runtime_error("MASTER_ADDR " + place.host + ", port " +
                               place.port + ": " + gai_strerror(fault));
  }
  ~Addresses() { freeaddrinfo(first); }
  Addresses(const Addresses &) = delete;
  Addresses &operator=(const Addresses &) = delete;

  addrinfo *first = nullptr;
};

class Socket {
public:
  explicit Socket(int number) : fd(number) {}
  ~Socket() {
    if (fd >= 0)
      close(fd);
  }
  Socket(Socket &&other) noexcept : fd(other.fd) { other.fd = -1; }
  Socket &operator=(Socket &&) = delete;

  template <typename T> void set(int level, int what, const T &value) const {
    setsockopt(fd, level, what, &value, sizeof(value));
  }
  bool sends(const void *data, std::size_t bytes) const {
    return ::send(fd, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
  }
  /// Returns whether all bytes arrived within `time`.
  bool receives(void *data, std::size_t bytes,
                std::chrono::seconds time) const {
    set(SOL_SOCKET, SO_RCVTIMEO, timeval{time.count(), 0});
    return recv(fd, data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }

  int fd;
};

/// Returns a socket that listens on all addresses of this machine, for up to
/// `callers` pending connections.
inline Socket doorAt(const MeetingPlace &place, int callers) {
  const Addresses all(place, true);
  // An IPv6 socket accepts IPv4 connections as well.
  for (const int family : {AF_INET6, AF_INET})
    for (const addrinfo *at = all.first; at; at = at->ai_next) {
      if (at->ai_family != family)
        continue;
      Socket door(socket(family, at->ai_socktype, at->ai_protocol));
      door.set(SOL_SOCKET, SO_REUSEADDR, 1);
      if (family == AF_INET6)
        door.set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
      if (bind(door.fd, at->ai_addr, at->ai_addrlen) == 0 &&
          listen(door.fd, callers) == 0)
        return door;
    }
  throw systemError("port " + place.port);
}

/// Broadcasts `bytes` bytes of rank 0 (the NCCL id) over TCP. Rank 0 listens at
/// MASTER_ADDR (default 127.0.0.1) and port MASTER_PORT + 1 (default 29501),
/// because torchrun itself uses MASTER_PORT. Each other rank connects and sends
/// its rank. Rank 0 ignores connections without a valid rank.
/// \throws std::runtime_error if the broadcast takes longer than `patience`
inline void handOut(void *data, std::size_t bytes, const Process &process,
                    const MeetingPlace &place,
                    std::chrono::seconds patience = std::chrono::seconds(60)) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kToSpeak(2);
  const auto end = Clock::now() + patience;
  const auto left = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end -
                                                                 Clock::now());
  };
  const std::string waited =
      " within " + std::to_string(patience.count()) + " s";
  if (process.rank == 0) {
    const Socket door = doorAt(place, process.ranks);
    std::set<std::int32_t> served;
    const auto others = static_cast<std::size_t>(process.ranks - 1);
    while (served.size() < others) {
      pollfd knock{door.fd, POLLIN, 0};
      if (left().count() <= 0 ||
          poll(&knock, 1, static_cast<int>(left().count())) == 0)
        throw std::runtime_error(
            std::to_string(served.size()) + " of " + std::to_string(others) +
            " other ranks connected to port " + place.port + waited);
      const Socket line(accept(door.fd, nullptr, nullptr));
      std::int32_t rank = 0;
      if (line.fd >= 0 && line.receives(&rank, sizeof(rank), kToSpeak) &&
          rank > 0 && rank < process.ranks && line.sends(data, bytes))
        served.insert(rank);
    }
    return;
  }
  const std::int32_t rank = process.rank;
  // Connections are retried, because rank 0 may start later.
  do {
    const Addresses all(place);
    for (const addrinfo *at = all.first; at; at = at->ai_next) {
      const Socket line(
          socket(at->ai_family, at->ai_socktype, at->ai_protocol));
      if (connect(line.fd, at->ai_addr, at->ai_addrlen) == 0 &&
          line.sends(&rank, sizeof(rank)) &&
          line.receives(data, bytes, patience))
        return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (left().count() > 0);
  throw std::runtime_error("rank 0 did not answer at " + place.host + ":" +
                           place.port + waited);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_MEETING_H
