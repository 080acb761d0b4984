//===- cuda_backend.h - The CUDA backend ------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
#define MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Returns the number of visible devices, or 0 if there is no driver.
int cudaDevices();

/// Returns why there are no devices, as the end of a sentence. The text is
/// empty if there are devices.
std::string whyNoCudaDevice();

/// Sets environment variables that CUDA reads at its initialization, unless
/// they are already set. The function must be called before MPI_Init, which may
/// initialize CUDA.
/// \param ranks  the number of ranks of the run; if there are several, CUDA
/// loads all kernels, including those of libraries, at its initialization
void prepareCuda(int ranks);

/// Selects the device of the calling thread.
/// \throws DeviceError if there is no such device
void useCudaDevice(int device);

/// Makes a backend on the calling thread's device. Tensors must be in memory
/// that the device can access. Kernel::run() only queues work, so tensors must
/// stay valid until the device has completed the work.
/// \throws DeviceError if there is no device
std::unique_ptr<Backend> makeCudaBackend();

/// Makes the backend that computes offloaded kernels on the host.
using HostMaker = std::function<std::unique_ptr<Backend>()>;

/// Makes a backend whose host() calls `makeHost` once, at its first call.
std::unique_ptr<Backend> makeCudaBackendBeside(const HostMaker &makeHost);

/// Returns the names of the backend's kernels, sorted.
std::vector<std::string> cudaKernelNames();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
