//===- registration.h - Memory that NCCL reads and writes itself *- C++ -*-===//
//
// NCCL copies what it is given through memory of its own, but for registered
// memory: there ranks of a machine reach each other's, and switches that can
// add do. That takes memory of NCCL's own allocator, which rounds up to what
// the device maps at once.
//
// Ranks of a communicator must agree: where one has registered what it gives
// and another has not, NCCL promises nothing. So what cannot be registered is
// an error, not left out.
//
// Captured calls register what they are given by themselves, if it is of that
// allocator; those that are not captured need it done before. Windows
// (ncclCommWindowRegister), which symmetric kernels need, are not used: to make
// one is a collective call of ranks whose sizes are equal, and to be measured
// before it is worth that.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H

#include <cstddef>

namespace mtplan::runtime::cuda {

/// How to do without, for the end of a message.
inline constexpr const char *kWithoutRegistration =
    " (MTPLAN_NCCL_REGISTER=0 does without registered memory)";

/// Whether it is asked for: MTPLAN_NCCL_REGISTER is neither empty nor 0.
bool registrationIsWanted();

/// Of the calling thread's device, for registration; at least one byte.
/// \throws DeviceError with the bytes if there is no room or no NCCL
void *allocateForNccl(std::size_t bytes);
/// When the device has done all that it was given. Communicators that have it
/// registered must have ended.
void releaseForNccl(void *data) noexcept;

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_REGISTRATION_H
