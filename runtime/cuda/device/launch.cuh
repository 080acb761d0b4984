//===- launch.cuh - Launches kernels ----------------------------*- C++ -*-===//

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
  std::int64_t blocks = 1, alsoBlocks = 1; ///< gridDim.x, gridDim.y
  unsigned threads = 256;                  ///< blockDim.x
  unsigned rows = 1;                       ///< blockDim.y
  unsigned shared = 0;                     ///< dynamic shared memory in bytes
};

/// Limits the shared memory of a block in bytes, unless the kernel opts in to
/// more (cudaFuncAttributeMaxDynamicSharedMemorySize).
inline constexpr unsigned kMostShared = 48 << 10;

/// Returns the largest size in bytes of shared memory per block on the current
/// device.
inline unsigned mostSharedOfDevice() {
  int device = 0, bytes = 0;
  MTPLAN_CUDA(cudaGetDevice(&device));
  MTPLAN_CUDA(cudaDeviceGetAttribute(
      &bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  return static_cast<unsigned>(bytes);
}

/// Queues a kernel on a stream; an empty grid does nothing. All kernels are
/// launched here, so an emulation on the host need only define
/// cudaLaunchKernelEx.
/// \throws DeviceError if the grid is too large or the launch fails
template <typename... Parameters>
void launch(cudaStream_t stream, const Grid &grid,
            void (*kernel)(Parameters...), Parameters... arguments) {
  if (grid.blocks == 0 || grid.alsoBlocks == 0)
    return;
  // A CUDA grid has these limits in x and y.
  if (grid.blocks > std::numeric_limits<std::int32_t>::max() ||
      grid.alsoBlocks > 65535)
    throw DeviceError(
        "a kernel of " + std::to_string(grid.blocks) + " x " +
        std::to_string(grid.alsoBlocks) +
        " blocks exceeds the device's limit of 2147483647 x 65535");
  const dim3 blocks(static_cast<unsigned>(grid.blocks),
                    static_cast<unsigned>(grid.alsoBlocks));
  const dim3 threads(grid.threads, grid.rows);
  if (grid.shared > kMostShared)
    MTPLAN_CUDA(
        cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(grid.shared)));
  // Members are initialized by position, because an emulation on the host
  // defines their names as macros.
  const cudaLaunchConfig_t config{blocks, threads, grid.shared,
                                  stream, nullptr, 0};
  MTPLAN_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Returns the number of blocks for `work` items with `ofBlock` items per
/// block.
constexpr std::int64_t blocksFor(std::int64_t work, std::int64_t ofBlock) {
  return (work + ofBlock - 1) / ofBlock;
}

constexpr Grid gridOf(std::int64_t items, unsigned threads = 256) {
  return {blocksFor(items, threads), 1, threads};
}

/// Returns the index of this thread in a grid of one dimension.
inline __device__ std::int64_t threadOfGrid() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_LAUNCH_CUH
