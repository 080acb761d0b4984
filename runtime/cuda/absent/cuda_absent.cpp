//===- cuda_absent.cpp - Stubs for a build without CUDA -------------------===//

#include <stdexcept>

#include "runtime/cuda/cuda_backend.h"

namespace mtplan::runtime {

static const char kWhy[] = "mtplan was built without CUDA: no nvcc was found";

int cudaDevices() { return 0; }

std::string whyNoCudaDevice() { return kWhy; }

void prepareCuda(int /*ranks*/) {}

void useCudaDevice(int /*device*/) { throw std::runtime_error(kWhy); }

std::unique_ptr<Backend> makeCudaBackend() { throw std::runtime_error(kWhy); }

std::unique_ptr<Backend> makeCudaBackendBeside(const HostMaker & /*makeHost*/) {
  throw std::runtime_error(kWhy);
}

std::vector<std::string> cudaKernelNames() { return {}; }

} // namespace mtplan::runtime
