//===- device_facts.cpp - What a GPU says of itself -----------------------===//

#include "runtime/cuda/device_facts.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "runtime/cuda/cudnn/fused_attention.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

namespace {

// 13000 is 13.0.
std::string versionText(int number) {
  return std::to_string(number / 1000) + '.' +
         std::to_string(number % 1000 / 10);
}

// 130002 is 13.0.2, and 91900 is 9.19.0.
std::string libraryVersionText(std::size_t number) {
  return std::to_string(number / 10000) + '.' +
         std::to_string(number % 10000 / 100) + '.' +
         std::to_string(number % 100);
}

} // namespace

DeviceFacts factsOfDevice() {
  int device = 0, library = 0, driver = 0;
  cudaDeviceProp properties{};
  MTPLAN_CUDA(cudaGetDevice(&device));
  MTPLAN_CUDA(cudaGetDeviceProperties(&properties, device));
  MTPLAN_CUDA(cudaRuntimeGetVersion(&library));
  MTPLAN_CUDA(cudaDriverGetVersion(&driver));
  DeviceFacts facts;
  facts.name = properties.name;
  facts.libraries = "CUDA " + versionText(library) + ", driver for " +
                    versionText(driver) + ", cuBLASLt " +
                    libraryVersionText(cublasLtGetVersion());
  if (const std::size_t fused = fusedAttentionVersion(); fused > 0)
    facts.libraries += ", cuDNN " + libraryVersionText(fused);
  facts.memory = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.sharesHost = false;
  return facts;
}

} // namespace mtplan::runtime::cuda
