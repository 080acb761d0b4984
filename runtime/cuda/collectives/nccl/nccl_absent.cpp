//===- nccl_absent.cpp - Stubs for a build without NCCL -------------------===//

#include "runtime/cuda/collectives/carrier.h"
#include "runtime/cuda/collectives/registration.h"

namespace mtplan::runtime::cuda {

std::unique_ptr<World> makeNcclWorld(World &host,
                                     const SharedContext & /*context*/) {
  throw CommunicationError(
      std::to_string(host.size()) +
      " ranks each have a GPU, which needs NCCL, but this build has no NCCL: "
      "install NCCL (nccl.h, libnccl) and build again, or run all ranks as "
      "threads of one process on one GPU");
}

void *allocateForNccl(std::size_t /*bytes*/) {
  throw DeviceError(std::string("this build has no NCCL") +
                    kWithoutRegistration);
}

void releaseForNccl(void * /*data*/) noexcept {}

} // namespace mtplan::runtime::cuda
