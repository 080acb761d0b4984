//===- nccl_memory.cpp - Memory of NCCL's allocator -----------------------===//

#include <algorithm>
#include <string>

#include <nccl.h>

#include "runtime/cuda/collectives/registration.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

void *allocateForNccl(std::size_t bytes) {
  void *data = nullptr;
  if (const ncclResult_t result =
          ncclMemAlloc(&data, std::max<std::size_t>(bytes, 1));
      result != ncclSuccess)
    throw DeviceError("NCCL does not allocate " + std::to_string(bytes) +
                      " bytes: " + ncclGetErrorString(result) +
                      kWithoutRegistration);
  return data;
}

// Unlike cudaFree it does not wait for the device.
void releaseForNccl(void *data) noexcept {
  cudaDeviceSynchronize();
  ncclMemFree(data);
}

} // namespace mtplan::runtime::cuda
