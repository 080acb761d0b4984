//===- start.cuh - Starts the ranks of a program ----------------*- C++ -*-===//

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

struct Start {
  int device = 0, rank = 0;
  const ncclUniqueId &id;
  std::barrier<> *threads = nullptr; ///< see Rank::threads
};

/// Initializes a rank on its device, without arenas and groups.
/// \param sizes  the sizes of the mesh's axes, major first
/// \param streams  the number of streams in the plan
inline Rank startedRank(const Start &start, int ranks,
                        const std::vector<int> &sizes, int streams) {
  Rank rank;
  rank.rank = start.rank;
  rank.ranks = ranks;
  rank.threads = start.threads;
  rank.sizes = sizes;
  int stride = ranks;
  for (const int size : sizes) {
    stride /= size;
    rank.places.push_back(start.rank / stride % size);
  }
  MTPLAN_CUDA(cudaSetDevice(start.device));
  rank.streams.open(streams);
  rank.products = std::make_unique<MatrixProducts>();
  MTPLAN_NCCL(ncclCommInitRank(&rank.world, ranks, start.id, start.rank));
  return rank;
}

/// Allocates an arena of zeros.
inline void reserve(Rank &rank, Arena arena, std::size_t bytes) {
  void *data = nullptr;
  MTPLAN_CUDA(cudaMalloc(&data, bytes));
  MTPLAN_CUDA(cudaMemsetAsync(data, 0, bytes, rank.stream()));
  rank.arenas[arena] = static_cast<std::byte *>(data);
}

/// Calls `run` for every rank of this process. With torchrun, mpirun or srun
/// there is one process per GPU, and rank 0 sends the NCCL id to the other
/// ranks. Without a launcher, a single process has a thread per rank.
inline void onEveryRank(int ranks,
                        const std::function<void(const Start &)> &run) {
  const Process process = thisProcess();
  // Streams that share a hardware connection block each other, and a send may
  // wait long for its receiver. CUDA supports at most 32 connections.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  // By default a kernel is loaded at its first launch. Loading waits until the
  // device is idle, which may deadlock with another rank.
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
    const int device = deviceOf(process, devices);
    if (process.rank == 0)
      MTPLAN_NCCL(ncclGetUniqueId(&id));
    handOut(&id, sizeof(id), process, meetingPlace());
    return run({device, process.rank, id});
  }
  if (devices < ranks)
    throw std::runtime_error(
        "the plan is for " + std::to_string(ranks) + " ranks, but " +
        std::to_string(devices) +
        " GPUs are visible; on several nodes, use torchrun, mpirun or srun");
  ncclUniqueId id{};
  MTPLAN_NCCL(ncclGetUniqueId(&id));
  std::barrier<> all(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&run, &id, &all, rank] {
      try {
        run({rank, rank, id, &all});
      } catch (const std::exception &error) {
        // The other ranks wait for this rank, so the process must exit.
        std::cerr << "rank " << rank << ": " << error.what() << std::endl;
        std::_Exit(1);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH
