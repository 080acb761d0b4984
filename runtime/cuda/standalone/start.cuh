//===- start.cuh - How ranks that stand alone find each other ---*- C++ -*-===//
//
// A process a GPU, under torchrun, mpirun or srun, whose variables say who it
// is; rank 0 then hands out NCCL's number over TCP, at MASTER_ADDR (127.0.0.1)
// and the port after MASTER_PORT (29500), which torchrun keeps for itself. Or
// one process, started alone: a thread a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

struct Process {
  int rank = 0, ranks = 1, device = 0;
  bool isAlone = true; ///< nobody else was started
};

inline Process thisProcess() {
  const char *const launchers[][3] = {
      {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}};
  for (const auto &[rank, ranks, device] : launchers)
    if (const char *own = std::getenv(rank), *all = std::getenv(ranks);
        own && all) {
      const char *local = std::getenv(device);
      return {std::atoi(own), std::atoi(all), local ? std::atoi(local) : 0,
              false};
    }
  return {};
}

inline std::runtime_error systemError(const std::string &what) {
  return std::runtime_error(what + ": " + std::strerror(errno));
}

/// Rank 0 sends NCCL's number to all others.
inline ncclUniqueId sharedId(const Process &process) {
  const char *address = std::getenv("MASTER_ADDR");
  const char *given = std::getenv("MASTER_PORT");
  const std::string host = address ? address : "127.0.0.1";
  const std::string port =
      std::to_string((given ? std::atoi(given) : 29500) + 1);
  const std::string where = host + ":" + port;
  ncclUniqueId id{};
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = process.rank == 0 ? AI_PASSIVE : 0;
  if (getaddrinfo(process.rank == 0 ? nullptr : host.c_str(), port.c_str(),
                  &hints, &found) != 0)
    throw std::runtime_error("MASTER_ADDR " + host + ": there is no such host");
  if (process.rank == 0) {
    MTPLAN_NCCL(ncclGetUniqueId(&id));
    const int door =
        socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    const int yes = 1;
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(door, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(door, process.ranks) != 0)
      throw systemError("port " + port);
    for (int other = 1; other < process.ranks; ++other) {
      const int line = accept(door, nullptr, nullptr);
      if (line < 0 || ::send(line, &id, sizeof(id), 0) != sizeof(id))
        throw systemError(where);
      close(line);
    }
    close(door);
  } else {
    // Rank 0 may come late.
    constexpr int kTries = 600;
    int line = -1;
    for (int i = 0; i < kTries && line < 0; ++i) {
      line = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
      if (connect(line, found->ai_addr, found->ai_addrlen) == 0)
        break;
      close(line);
      line = -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (line < 0 || recv(line, &id, sizeof(id), MSG_WAITALL) != sizeof(id))
      throw systemError("rank 0 at " + where);
    close(line);
  }
  freeaddrinfo(found);
  return id;
}

/// Splits the world: this rank goes to the communicator that names it. Every
/// rank has to call it.
/// \return null, and a size of 0, if none does
inline std::pair<ncclComm_t, int>
communicatorOf(const Rank &rank,
               const std::vector<std::vector<int>> &communicators) {
  int color = NCCL_SPLIT_NOCOLOR, key = 0, size = 0;
  for (std::size_t c = 0; c < communicators.size(); ++c)
    for (std::size_t i = 0; i < communicators[c].size(); ++i)
      if (communicators[c][i] == rank.rank) {
        color = static_cast<int>(c);
        key = static_cast<int>(i);
        size = static_cast<int>(communicators[c].size());
      }
  ncclComm_t own = nullptr;
  MTPLAN_NCCL(ncclCommSplit(rank.world, color, key, &own, nullptr));
  return {own, size};
}

/// The next of the rank's groups.
inline void join(Rank &rank, const std::vector<std::vector<int>> &all) {
  const auto [communicator, size] = communicatorOf(rank, all);
  rank.groups.push_back(communicator);
  rank.groupSizes.push_back(size);
}

inline bool isOneOf(int number, const std::vector<int> &all) {
  return std::find(all.begin(), all.end(), number) != all.end();
}

/// A line to the rank at the same place of another stage, if this rank is of
/// one of the two. Every rank has to call it.
/// \param sent  bytes of a step
inline Line lineBetween(const Rank &rank, const std::vector<int> &from,
                        const std::vector<int> &to, std::size_t sent) {
  std::vector<std::vector<int>> pairs;
  bool sends = false;
  Line line;
  for (std::size_t i = 0; i < from.size(); ++i) {
    pairs.push_back({from[i], to[i]});
    if (from[i] == rank.rank) {
      sends = true;
      line.other = 1;
    }
  }
  line.communicator = communicatorOf(rank, pairs).first;
  if (!sends)
    return line;
  MTPLAN_CUDA(cudaStreamCreateWithFlags(&line.stream, cudaStreamNonBlocking));
  MTPLAN_CUDA(cudaEventCreateWithFlags(&line.ready, cudaEventDisableTiming));
  line.copies.atLeast(sent);
  return line;
}

/// A rank on its device, with memory but not yet its groups.
/// \param sizes  of the mesh's axes, major first
inline Rank rankOn(int device, int number, int ranks, const ncclUniqueId &id,
                   const std::vector<int> &sizes) {
  Rank rank;
  rank.rank = number;
  rank.ranks = ranks;
  int stride = ranks;
  for (const int size : sizes) {
    stride /= size;
    rank.places.push_back(number / stride % size);
  }
  MTPLAN_CUDA(cudaSetDevice(device));
  MTPLAN_CUDA(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
  rank.products = std::make_unique<MatrixProducts>();
  MTPLAN_NCCL(ncclCommInitRank(&rank.world, ranks, id, number));
  return rank;
}

/// An arena, of zeros.
inline void reserve(Rank &rank, Arena arena, std::size_t bytes) {
  void *data = nullptr;
  MTPLAN_CUDA(cudaMalloc(&data, bytes));
  MTPLAN_CUDA(cudaMemsetAsync(data, 0, bytes, rank.stream));
  rank.arenas[arena] = static_cast<std::byte *>(data);
}

/// Calls `run` for every rank of this process.
inline void
onEveryRank(int ranks, const std::function<void(int device, int rank,
                                                const ncclUniqueId &id)> &run) {
  const Process process = thisProcess();
  int devices = 0;
  MTPLAN_CUDA(cudaGetDeviceCount(&devices));
  if (!process.isAlone) {
    if (process.ranks != ranks)
      throw std::runtime_error("the plan is for " + std::to_string(ranks) +
                               " ranks, but " + std::to_string(process.ranks) +
                               " were started");
    return run(process.device % devices, process.rank, sharedId(process));
  }
  if (devices < ranks)
    throw std::runtime_error(
        "the plan is for " + std::to_string(ranks) + " ranks, but " +
        std::to_string(devices) +
        " GPUs are here; over several nodes: torchrun, mpirun or srun");
  ncclUniqueId id{};
  MTPLAN_NCCL(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&run, &id, rank] {
      try {
        run(rank, rank, id);
      } catch (const std::exception &error) {
        // The others wait for this rank: there is no going on.
        std::cerr << "rank " << rank << ": " << error.what() << std::endl;
        std::_Exit(1);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH
