//===- device_queue.h - A GPU's streams and graphs --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_QUEUE_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_QUEUE_H

#include <memory>

#include "runtime/backend/queue.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Over the context's streams. What it records are CUDA graphs, captured in the
/// calling thread alone: others may go on copying.
std::unique_ptr<Queue> makeDeviceQueue(const SharedContext &context);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_QUEUE_H
