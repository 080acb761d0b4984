//===- carrier.h - Chooses how ranks on GPUs communicate --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H

#include <memory>

#include "runtime/communicator/communicator.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Makes a OneDeviceWorld if all ranks are threads of one process and share a
/// device, or a world over NCCL if each rank has its own device. All ranks of
/// `host` must call this function, and `host` must outlive the world. The world
/// queues its calls on the context's selected stream.
/// \throws CommunicationError on all ranks if neither condition holds, if the
/// ranks' settings differ, if more than kMostPlaces ranks share a device, or if
/// ranks that share a device register memory with NCCL
std::unique_ptr<World> makeCarrier(World &host, const SharedContext &context);

/// \throws CommunicationError in a build without NCCL
std::unique_ptr<World> makeNcclWorld(World &host, const SharedContext &context);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
