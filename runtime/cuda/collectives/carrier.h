//===- carrier.h - The world that transports GPUs' memory -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H

#include <memory>

#include "runtime/communicator/communicator.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Makes a OneDeviceWorld if all ranks are threads of one process and share its
/// device, and a world over NCCL if each rank has a device of its own. All
/// ranks of `host`, which outlives it, call this. Calls of the world are queued
/// on the context's selected stream. \throws CommunicationError on all ranks if
/// the devices are neither
std::unique_ptr<World> makeCarrier(World &host, const SharedContext &context);

/// Makes the world over NCCL. Throws CommunicationError in a build without
/// NCCL.
std::unique_ptr<World> makeNcclWorld(World &host, const SharedContext &context);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
