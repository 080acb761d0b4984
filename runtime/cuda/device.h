//===- device.h - Memory, queue and facts of a GPU --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_H

#include <memory>

#include "runtime/backend/kernel.h"
#include "runtime/backend/memory.h"
#include "runtime/backend/queue.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Makes the memory of the current device. Copies are queued on the context's
/// selected stream, and staging() is pinned.
std::unique_ptr<Memory> makeDeviceMemory(const SharedContext &context);

/// Makes the queue over the context's streams. Recordings are CUDA graphs. A
/// capture affects only the calling thread, so other threads may copy data
/// during a capture.
std::unique_ptr<Queue> makeDeviceQueue(const SharedContext &context);

DeviceFacts factsOfDevice();

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_H
