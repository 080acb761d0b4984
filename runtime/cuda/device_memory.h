//===- device_memory.h - A GPU's memory -------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_MEMORY_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_MEMORY_H

#include <memory>

#include "runtime/backend/memory.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Copies go on the selected stream. Its staging() is pinned.
std::unique_ptr<Memory> makeDeviceMemory(const SharedContext &context);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_MEMORY_H
