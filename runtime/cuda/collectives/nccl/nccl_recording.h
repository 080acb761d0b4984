//===- nccl_recording.h - Calls of NCCL in a graph --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_RECORDING_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_RECORDING_H

#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/collectives/nccl/nccl_link.h"
#include "runtime/cuda/collectives/nccl/nccl_mail.h"

namespace mtplan::runtime::cuda {

/// Of one rank. The watchdog follows them in every launch of the graph.
class NcclRecording final : public RecordedCalls {
public:
  /// At the end of a capture that the context's stream 0 has begun, which then
  /// follows all that lines send in it.
  /// \param watchdog  outlives it
  NcclRecording(const Watchdog &watchdog, SharedContext context,
                const std::vector<std::shared_ptr<NcclLink>> &links,
                const std::vector<std::shared_ptr<OutgoingLine>> &outgoing);

  void repeat() override;
  void repeated() override;

private:
  const Watchdog &watchdog;
  const SharedContext context;
  const std::shared_ptr<GraphLaunch> launch;
  std::vector<std::pair<std::shared_ptr<NcclLink>, std::vector<Flight>>> calls;
  std::vector<std::shared_ptr<OutgoingLine>> lines; ///< that send in it
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_RECORDING_H
