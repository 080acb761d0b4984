//===- cuda_backend.h - Kernels on a GPU ------------------------*- C++ -*-===//
//
// Pointers of an invocation are to memory that the device sees, and run()
// queues: what it was given must stay until the device has done it.
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

/// That this process sees; 0 also without a driver.
int cudaDevices();

/// Why there are none, for the end of a sentence; "" if there are.
std::string whyNoCudaDevice();

/// What CUDA is to read from the environment when it starts, unless that says
/// otherwise. Call first of all: an MPI that knows of CUDA may start it.
/// \param ranks  of the run: where several wait for each other kernels, of
///               libraries too, have to be on devices before anything runs
void prepareCuda(int ranks);

/// From now on, of the calling thread.
/// \throws DeviceError if there is no such device
void useCudaDevice(int device);

/// Of the calling thread's device.
/// \throws DeviceError if there is none
std::unique_ptr<Backend> makeCudaBackend();

/// Makes who computes on the host what is offloaded.
using HostMaker = std::function<std::unique_ptr<Backend>()>;

/// The same; `makeHost` is called where something is offloaded, once.
std::unique_ptr<Backend> makeCudaBackendBeside(const HostMaker &makeHost);

/// Kernels that it has, in the order of names.
std::vector<std::string> cudaKernelNames();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CUDA_CUDA_BACKEND_H
