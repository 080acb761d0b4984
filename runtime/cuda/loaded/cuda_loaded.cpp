//===- cuda_loaded.cpp - Loads the CUDA module at run time ----------------===//

#include "runtime/cuda/loaded/module_entry.h"
#include "runtime/modules/module.h"

namespace mtplan::runtime {

static const cuda::ModuleTable &table() {
  static const auto *const found = static_cast<const cuda::ModuleTable *>(
      moduleTable("libmtplan_cuda.so", "mtplanCudaModule"));
  return *found;
}

/// Returns why the module cannot be loaded, or an empty text.
static std::string whyNotLoaded() {
  try {
    table();
    return {};
  } catch (const ModuleError &error) {
    return std::string(error.what()) +
           "; add the folders of NVIDIA's libraries to LD_LIBRARY_PATH";
  }
}

int cudaDevices() { return whyNotLoaded().empty() ? table().devices() : 0; }

std::string whyNoCudaDevice() {
  const std::string why = whyNotLoaded();
  return why.empty() ? table().whyNoDevice() : why;
}

void prepareCuda(int ranks) {
  if (whyNotLoaded().empty())
    table().prepare(ranks);
}

void useCudaDevice(int device) { table().useDevice(device); }

std::unique_ptr<Backend> makeCudaBackend() { return table().make(); }

std::unique_ptr<Backend> makeCudaBackendBeside(const HostMaker &makeHost) {
  return table().makeBeside(makeHost);
}

std::vector<std::string> cudaKernelNames() { return table().kernelNames(); }

} // namespace mtplan::runtime
