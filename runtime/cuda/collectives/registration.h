//===- registration.h - Memory registered with NCCL -------------*- C++ -*-===//
//
// NCCL copies data through internal buffers, unless the caller's buffers are
// registered. Ranks of a machine can access each other's registered memory
// directly, and so can switches that reduce in the network. Registered memory
// comes from NCCL's allocator, which rounds sizes up to the device's mapping
// granularity.
//
// Either all ranks of a communicator register memory, or none of them does:
// NCCL does not define mixed cases. A failed registration is therefore an
// error.
//
// NCCL registers the buffers of captured calls itself. For other calls, buffers
// are registered explicitly. Windows (ncclCommWindowRegister), which symmetric
// kernels need, are not used: creating a window is a collective call with equal
// sizes on all ranks, and the benefit has not been measured.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace mtplan::runtime::cuda {

/// Ends error messages, and says how to disable registration.
inline constexpr const char *kWithoutRegistration =
    " (set MTPLAN_NCCL_REGISTER=0 to run without registered memory)";

/// Returns whether MTPLAN_NCCL_REGISTER is set, and neither empty nor 0.
inline bool registrationIsWanted() {
  const char *given = std::getenv("MTPLAN_NCCL_REGISTER");
  const std::string_view wanted = given ? given : "";
  return !wanted.empty() && wanted != "0";
}

/// Allocates device memory that can be registered, at least one byte.
/// \throws DeviceError in a build without NCCL, or if memory is insufficient
/// (then the message states the size)
void *allocateForNccl(std::size_t bytes);
/// Waits until the device is idle, and frees the memory. Communicators that
/// have registered the memory must be closed before.
void releaseForNccl(void *data) noexcept;

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H
