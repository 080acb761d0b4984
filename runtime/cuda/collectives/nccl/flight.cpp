//===- flight.cpp - A call of NCCL that is under way ----------------------===//

#include "runtime/cuda/collectives/nccl/flight.h"

namespace mtplan::runtime::cuda {

namespace {

/// Whether an event of a graph has happened since the launch, which has begun:
/// until the graph has come to it, its time is that of a launch before, or it
/// has none. Empty: the device does not say.
std::optional<bool> hasHappenedSince(const Event &launch, const Event &event) {
  cudaError_t status = cudaEventQuery(event.get());
  float milliseconds = 0.0F;
  if (status == cudaSuccess)
    status = cudaEventElapsedTime(&milliseconds, launch.get(), event.get());
  if (status == cudaSuccess)
    return milliseconds >= 0.0F;
  cudaGetLastError(); // which it is not
  if (status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle)
    return false;
  return std::nullopt;
}

} // namespace

std::string Flight::words() const {
  return step == 0 ? what : "step " + std::to_string(step) + ", " + what;
}

bool Flight::hasBegun() const {
  if (!launch)
    return marks->begun.hasHappened();
  return launch->before.hasHappened() &&
         hasHappenedSince(launch->before, marks->begun).value_or(true);
}

bool Flight::hasEnded() const {
  if (!launch)
    return marks->ended.hasHappened();
  return launch->behind.hasHappened() ||
         (launch->before.hasHappened() &&
          hasHappenedSince(launch->before, marks->ended).value_or(false));
}

} // namespace mtplan::runtime::cuda
