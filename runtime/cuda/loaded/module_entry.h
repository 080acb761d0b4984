//===- module_entry.h - Entry point of the CUDA module ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_LOADED_MODULE_ENTRY_H
#define MTPLAN_RUNTIME_CUDA_LOADED_MODULE_ENTRY_H

#include "runtime/cuda/cuda_backend.h"

namespace mtplan::runtime::cuda {

/// Holds the functions of cuda_backend.h that a program loads from a module.
/// The program and the module come from one build, so the table has no version.
struct ModuleTable {
  decltype(&cudaDevices) devices;
  decltype(&whyNoCudaDevice) whyNoDevice;
  decltype(&prepareCuda) prepare;
  decltype(&useCudaDevice) useDevice;
  decltype(&makeCudaBackend) make;
  decltype(&makeCudaBackendBeside) makeBeside;
  decltype(&cudaKernelNames) kernelNames;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_LOADED_MODULE_ENTRY_H
