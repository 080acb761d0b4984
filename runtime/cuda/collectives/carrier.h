//===- carrier.h - Chooses the world of GPU memory --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H

#include <memory>

#include "runtime/communicator/communicator.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Makes a OneDeviceWorld if all ranks are threads of one process and share a
/// device, or a world over NCCL if each rank has its own device. All ranks of
/// `host` must call this, and `host` must outlive the world. Calls of the world
/// are queued on the context's selected stream.
/// \throws CommunicationError on all ranks if neither holds, if the ranks'
/// settings differ, or if the ranks that share a device are more than
/// kMostPlaces or register memory with NCCL
std::unique_ptr<World> makeCarrier(World &host, const SharedContext &context);

/// \throws CommunicationError in a build without NCCL
std::unique_ptr<World> makeNcclWorld(World &host, const SharedContext &context);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
