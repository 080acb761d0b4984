//===- cuda_backend.h - Kernels on a GPU ------------------------*- C++ -*-===//
//
// Pointers of an invocation are to memory that the device sees, and run()
// queues: what it was given must stay until the device has done it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
#define MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H

#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// That this process sees; 0 also without a driver.
int cudaDevices();

/// Of the process's present device.
/// \throws DeviceError if there is none
std::unique_ptr<Backend> makeCudaBackend();

/// Kernels that it has, in the order of names.
std::vector<std::string> cudaKernelNames();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
