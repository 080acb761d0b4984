//===- device_error.h - Errors of CUDA calls --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ERROR_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_ERROR_H

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

namespace mtplan::runtime {

/// Reports a failed call of CUDA or its libraries. For MTPLAN_CUDA, what() is
/// like "handles.h:24: cudaMalloc(&data, bytes): out of memory".
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void checkCuda(cudaError_t status, const char *call, const char *file,
                      int line) {
  if (status == cudaSuccess)
    return;
  const std::string path(file);
  throw DeviceError(path.substr(path.rfind('/') + 1) + ":" +
                    std::to_string(line) + ": " + call + ": " +
                    cudaGetErrorString(status));
}

} // namespace mtplan::runtime

/// Evaluates a call of the CUDA runtime, and throws DeviceError if it fails.
#define MTPLAN_CUDA(call)                                                      \
  ::mtplan::runtime::checkCuda((call), #call, __FILE__, __LINE__)

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ERROR_H
