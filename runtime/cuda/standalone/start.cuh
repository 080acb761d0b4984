//===- start.cuh - How ranks that stand alone start -------------*- C++ -*-===//
//
// Under torchrun, mpirun or srun each GPU has a process, and rank 0 hands out
// the id of NCCL. A process that is started alone has a thread for each GPU.
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

/// The device, the number and the id of NCCL of a rank that starts.
struct Start {
  int device = 0, rank = 0;
  const ncclUniqueId &id;
  std::barrier<> *threads = nullptr; ///< see Rank
};

inline bool isOneOf(int number, const std::vector<int> &all) {
  return std::find(all.begin(), all.end(), number) != all.end();
}

/// Starts a rank on its device, without arenas and groups.
/// \param sizes    of the mesh's axes, major first
/// \param streams  number of the plan's streams
inline Rank startedRank(const Start &start, int ranks,
                        const std::vector<int> &sizes, int streams) {
  Rank rank;
  rank.rank = start.rank;
  rank.ranks = ranks;
  rank.threads = start.threads;
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

/// Allocates an arena, and clears it.
inline void reserve(Rank &rank, Arena arena, std::size_t bytes) {
  void *data = nullptr;
  MTPLAN_CUDA(cudaMalloc(&data, bytes));
  MTPLAN_CUDA(cudaMemsetAsync(data, 0, bytes, rank.stream()));
  rank.arenas[arena] = static_cast<std::byte *>(data);
}

/// Calls `run` for every rank of this process.
inline void onEveryRank(int ranks,
                        const std::function<void(const Start &)> &run) {
  const Process process = thisProcess();
  // Streams that share a connection to the device wait for each other, and a
  // send may wait long for its receiver. Therefore CUDA makes its maximum of
  // connections.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  // Kernels are loaded now. A kernel that is loaded when it is first queued
  // waits until the device is idle, and that may wait for another rank.
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
    return run({process.device % devices, process.rank, id});
  }
  if (devices < ranks)
    throw std::runtime_error(
        "the plan is for " + std::to_string(ranks) + " ranks, but " +
        std::to_string(devices) +
        " GPUs are here; over several nodes: torchrun, mpirun or srun");
  ncclUniqueId id{};
  MTPLAN_NCCL(ncclGetUniqueId(&id));
  std::barrier<> all(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&run, &id, &all, rank] {
      try {
        run({rank, rank, id, &all});
      } catch (const std::exception &error) {
        // The other ranks wait for this one, so the run cannot go on.
        std::cerr << "rank " << rank << ": " << error.what() << std::endl;
        std::_Exit(1);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_START_CUH
