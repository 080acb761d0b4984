//===- module_entry.cpp - Entry point of the CUDA module ------------------===//

#include "runtime/cuda/loaded/module_entry.h"

using namespace mtplan::runtime;

extern "C" const void *mtplanCudaModule() {
  static const cuda::ModuleTable table = {
      &cudaDevices,     &whyNoCudaDevice, &prepareCuda,
      &useCudaDevice,   &makeCudaBackend, &makeCudaBackendBeside,
      &cudaKernelNames,
  };
  return &table;
}
