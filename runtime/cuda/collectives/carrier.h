//===- carrier.h - Who carries what lies in GPUs' memory --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H

#include <memory>

#include "runtime/communicator/communicator.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Where all ranks are threads of one process and share its device, a
/// OneDeviceWorld; where each has a device of its own, NCCL. All ranks of
/// `host`, which outlives it, ask for it. Calls are queued on the context's
/// selected stream.
/// \throws CommunicationError on all ranks if the ranks' devices are others
std::unique_ptr<World> makeCarrier(World &host, const SharedContext &context);

/// The world over NCCL; throws CommunicationError if it was built without.
std::unique_ptr<World> makeNcclWorld(World &host, const SharedContext &context);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_CARRIER_H
