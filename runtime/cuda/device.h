//===- device.h - The memory, queue and facts of a GPU ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_H

#include <memory>

#include "runtime/backend/kernel.h"
#include "runtime/backend/memory.h"
#include "runtime/backend/queue.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Makes the memory of a device. Copies are queued on the selected stream, and
/// staging() is pinned.
std::unique_ptr<Memory> makeDeviceMemory(const SharedContext &context);

/// Makes the queue over the context's streams. It records CUDA graphs, which
/// are captured in the calling thread alone, so that other threads may copy.
std::unique_ptr<Queue> makeDeviceQueue(const SharedContext &context);

/// Returns the facts of the process's present device.
DeviceFacts factsOfDevice();

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_H
