//===- start.cuh - How ranks that stand alone find each other ---*- C++ -*-===//
//
// A process a GPU, under torchrun, mpirun or srun: rank 0 hands out NCCL's
// number. Or one process, started alone: a thread a GPU.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "runtime/cuda/standalone/meeting.h"
#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

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

/// A first byte: it makes connections, for which both ranks have to come. In a
/// step either may have to do something else first.
inline void connect(Rank &rank, const Line &line, bool sends) {
  void *const byte = rank.streams.lanes.front().exchange.atLeast(1);
  cudaStream_t stream = sends ? line.stream : rank.stream();
  if (sends)
    MTPLAN_NCCL(
        ncclSend(byte, 1, ncclInt8, line.other, line.communicator, stream));
  else
    MTPLAN_NCCL(
        ncclRecv(byte, 1, ncclInt8, line.other, line.communicator, stream));
  MTPLAN_CUDA(cudaStreamSynchronize(stream));
}

/// A line to the rank at the same place of another stage, if this rank is of
/// one of the two. Every rank has to call it.
/// \param sent  bytes of a step
inline Line lineBetween(Rank &rank, const std::vector<int> &from,
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
  if (sends) {
    MTPLAN_CUDA(cudaStreamCreateWithFlags(&line.stream, cudaStreamNonBlocking));
    MTPLAN_CUDA(cudaEventCreateWithFlags(&line.ready, cudaEventDisableTiming));
    line.copies.atLeast(sent);
  }
  if (line.communicator)
    connect(rank, line, sends);
  return line;
}

/// A rank on its device, with memory but not yet its groups.
/// \param sizes    of the mesh's axes, major first
/// \param streams  of the plan, how many
inline Rank rankOn(int device, int number, int ranks, const ncclUniqueId &id,
                   const std::vector<int> &sizes, int streams) {
  Rank rank;
  rank.rank = number;
  rank.ranks = ranks;
  int stride = ranks;
  for (const int size : sizes) {
    stride /= size;
    rank.places.push_back(number / stride % size);
  }
  MTPLAN_CUDA(cudaSetDevice(device));
  rank.streams.open(streams);
  rank.products = std::make_unique<MatrixProducts>();
  MTPLAN_NCCL(ncclCommInitRank(&rank.world, ranks, id, number));
  return rank;
}

/// An arena, of zeros.
inline void reserve(Rank &rank, Arena arena, std::size_t bytes) {
  void *data = nullptr;
  MTPLAN_CUDA(cudaMalloc(&data, bytes));
  MTPLAN_CUDA(cudaMemsetAsync(data, 0, bytes, rank.stream()));
  rank.arenas[arena] = static_cast<std::byte *>(data);
}

/// Calls `run` for every rank of this process.
inline void
onEveryRank(int ranks, const std::function<void(int device, int rank,
                                                const ncclUniqueId &id)> &run) {
  const Process process = thisProcess();
  // Streams that share a connection to the device wait for each other. Lines
  // have one each, in which what is sent may wait long for its receiver.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  // Else a kernel is loaded where it is first queued, once the device is idle,
  // which it may not be before another rank has gone on.
  if (ranks > 1)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  int devices = 0;
  MTPLAN_CUDA(cudaGetDeviceCount(&devices));
  if (!process.isAlone) {
    if (process.ranks != ranks)
      throw std::runtime_error("the plan is for " + std::to_string(ranks) +
                               " ranks, but " + std::to_string(process.ranks) +
                               " were started");
    ncclUniqueId id{};
    if (process.rank == 0)
      MTPLAN_NCCL(ncclGetUniqueId(&id));
    handOut(&id, sizeof(id), process, meetingPlace());
    return run(process.device % devices, process.rank, id);
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
