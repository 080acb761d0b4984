//===- device_facts.h - What a GPU says of itself ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_FACTS_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_FACTS_H

#include "runtime/backend/kernel.h"

namespace mtplan::runtime::cuda {

/// Of the process's present device.
DeviceFacts factsOfDevice();

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_FACTS_H
