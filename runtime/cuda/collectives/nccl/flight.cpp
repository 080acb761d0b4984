//===- flight.cpp - A call of NCCL that is under way ----------------------===//

#include "runtime/cuda/collectives/nccl/flight.h"

namespace mtplan::runtime::cuda {

namespace {

/// Whether it has happened since the launch of its graph, if it is of one:
/// until the graph has come to it, its time is that of a launch before, or it
/// has none.
bool hasHappened(const Event &event, const Event *launch) {
  if (!launch)
    return event.hasHappened();
  if (!launch->hasHappened() || !event.hasHappened())
    return false;
  float milliseconds = 0.0F;
  const cudaError_t status =
      cudaEventElapsedTime(&milliseconds, launch->get(), event.get());
  if (status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle) {
    cudaGetLastError(); // which it is not
    return false;
  }
  MTPLAN_CUDA(status);
  return milliseconds >= 0.0F;
}

} // namespace

std::string Flight::words() const {
  return step == 0 ? what : "step " + std::to_string(step) + ", " + what;
}

bool Flight::hasBegun() const {
  return hasHappened(marks->begun, launch.get());
}

bool Flight::hasEnded() const {
  return hasHappened(marks->ended, launch.get());
}

} // namespace mtplan::runtime::cuda
