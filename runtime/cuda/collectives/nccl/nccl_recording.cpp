//===- nccl_recording.cpp - Calls of NCCL in a graph ----------------------===//

#include "runtime/cuda/collectives/nccl/nccl_recording.h"

namespace mtplan::runtime::cuda {

NcclRecording::NcclRecording(
    const Watchdog &theWatchdog, SharedContext theContext,
    const std::vector<std::shared_ptr<NcclLink>> &links,
    const std::vector<std::shared_ptr<OutgoingLine>> &outgoing)
    : watchdog(theWatchdog), context(std::move(theContext)),
      launch(std::make_shared<GraphLaunch>()) {
  for (const auto &link : links)
    if (std::vector<Flight> its = link->takeRecorded(); !its.empty())
      calls.emplace_back(link, std::move(its));
  for (const auto &line : outgoing)
    if (line->endRecording(context->stream(0).get()))
      lines.push_back(line);
}

void NcclRecording::repeat() {
  watchdog.check();
  cudaStream_t stream = context->stream(0).get();
  for (const auto &line : lines)
    line->letFollow(stream);
  // The device has other work meanwhile, which is queued after them.
  for (const auto &[link, its] : calls)
    while (!link->haveEnded(*launch))
      awaitAMoment(watchdog);
  MTPLAN_CUDA(cudaEventRecord(launch->before.get(), stream));
}

void NcclRecording::repeated() {
  cudaStream_t stream = context->stream(0).get();
  MTPLAN_CUDA(cudaEventRecord(launch->behind.get(), stream));
  for (const auto &[link, its] : calls)
    link->repeat(its, launch);
}

} // namespace mtplan::runtime::cuda
