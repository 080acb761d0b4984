//===- cuda_backend.h - Kernels on a GPU ------------------------*- C++ -*-===//
//
// The pointers of an invocation are to memory that the device sees. run() only
// queues, so operands and results must stay valid until the device is done.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
#define MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Returns the number of devices that this process sees; 0 without a driver.
int cudaDevices();

/// Returns why there are none, as the end of a sentence; "" if there are some.
std::string whyNoCudaDevice();

/// Sets variables of the environment that CUDA reads when it starts, unless
/// they are set. Call it first: an MPI with CUDA support may start CUDA. \param
/// ranks  of the run; if there are several, all kernels, also those of
///               libraries, are loaded before any runs
void prepareCuda(int ranks);

/// Selects the device of the calling thread.
/// \throws DeviceError if there is no such device
void useCudaDevice(int device);

/// Makes a backend on the calling thread's device.
/// \throws DeviceError if there is none
std::unique_ptr<Backend> makeCudaBackend();

/// Makes the backend that computes offloaded kernels on the host.
using HostMaker = std::function<std::unique_ptr<Backend>()>;

/// Makes a backend that calls `makeHost` once when a kernel is offloaded.
std::unique_ptr<Backend> makeCudaBackendBeside(const HostMaker &makeHost);

/// Returns the names of its kernels, sorted.
std::vector<std::string> cudaKernelNames();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
