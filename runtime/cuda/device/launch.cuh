//===- launch.cuh - Queues a kernel -----------------------------*- C++ -*-===//
//
// All kernels start here. Tests compile the same source for the host with their
// own cudaLaunchKernelEx (tests/emulator).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_LAUNCH_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_LAUNCH_CUH

#include <cstdint>
#include <limits>
#include <string>

#include <cuda_runtime.h>

#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

inline constexpr int kWarp = 32;

struct Grid {
  std::int64_t blocks = 1, alsoBlocks = 1; ///< blockIdx.x, blockIdx.y
  unsigned threads = 256;                  ///< per block
  unsigned rows = 1;                       ///< threadIdx.y
  /// Bytes that a block shares beside what its kernel declares.
  unsigned shared = 0;
};

/// A kernel needs a permission to share more bytes than these per block.
inline constexpr unsigned kMostShared = 48 << 10;

/// Returns the most bytes that a block of the thread's device may share.
inline unsigned mostSharedOfDevice() {
  int device = 0, bytes = 0;
  MTPLAN_CUDA(cudaGetDevice(&device));
  MTPLAN_CUDA(cudaDeviceGetAttribute(
      &bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<unsigned>(bytes);
}

template <typename... Parameters>
void launch(cudaStream_t stream, const Grid &grid,
            void (*kernel)(Parameters...), Parameters... arguments) {
  if (grid.blocks == 0 || grid.alsoBlocks == 0)
    return;
  // A device takes no more in x, and fewer in y.
  if (grid.blocks > std::numeric_limits<std::int32_t>::max() ||
      grid.alsoBlocks > 65535)
    throw DeviceError("a kernel of " + std::to_string(grid.blocks) + " x " +
                      std::to_string(grid.alsoBlocks) +
                      " blocks is more than a device takes");
  const dim3 blocks(static_cast<unsigned>(grid.blocks),
                    static_cast<unsigned>(grid.alsoBlocks));
  const dim3 threads(grid.threads, grid.rows);
  if (grid.shared > kMostShared)
    MTPLAN_CUDA(
        cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(grid.shared)));
  // Members are set by position: in the emulator their names are macros.
  const cudaLaunchConfig_t config{blocks, threads, grid.shared,
                                  stream, nullptr, 0};
  MTPLAN_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Returns the blocks for `work` items at `ofBlock` per block.
constexpr std::int64_t blocksFor(std::int64_t work, std::int64_t ofBlock) {
  return (work + ofBlock - 1) / ofBlock;
}

/// Returns a grid with one thread for each item.
constexpr Grid gridOf(std::int64_t items, unsigned threads = 256) {
  return {blocksFor(items, threads), 1, threads};
}

/// Returns the index of this thread in a grid of one dimension.
inline __device__ std::int64_t threadOfGrid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_LAUNCH_CUH
