//===- registration.h - Memory that NCCL reads and writes itself *- C++ -*-===//
//
// NCCL copies data through memory of its own, unless the memory is registered.
// Ranks of a machine access registered memory of each other directly, and
// switches that can add do so. Registered memory comes from NCCL's own
// allocator, which rounds sizes up to the device's mapping granularity.
//
// The ranks of a communicator must agree: NCCL promises nothing where one has
// registered its memory and another has not. A failed registration is therefore
// an error.
//
// Captured calls register memory of that allocator by themselves; for other
// calls it is registered beforehand. Windows (ncclCommWindowRegister), which
// symmetric kernels need, are not used: making one is a collective call with
// equal sizes on all ranks, and its benefit has not been measured.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace mtplan::runtime::cuda {

/// Ends a message with the way to do without registration.
inline constexpr const char *kWithoutRegistration =
    " (MTPLAN_NCCL_REGISTER=0 does without registered memory)";

/// Returns whether MTPLAN_NCCL_REGISTER is set, and neither empty nor 0.
inline bool registrationIsWanted() {
  const char *given = std::getenv("MTPLAN_NCCL_REGISTER");
  const std::string_view wanted = given ? given : "";
  return !wanted.empty() && wanted != "0";
}

/// Allocates memory of the calling thread's device for registration, at least
/// one byte.
/// \throws DeviceError with the bytes if there is no room or no NCCL
void *allocateForNccl(std::size_t bytes);
/// Releases it once the device is idle. Communicators that have registered it
/// must have ended.
void releaseForNccl(void *data) noexcept;

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H
