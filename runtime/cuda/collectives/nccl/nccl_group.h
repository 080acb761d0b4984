//===- nccl_group.h - The collectives of NCCL -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/cuda/collectives/nccl/nccl_link.h"

namespace mtplan::runtime::cuda {

/// Implements collectives by NCCL, which accepts one contiguous row of data per
/// rank. A tensor with several rows, each with pieces of all ranks, is
/// transposed in scratch memory before or after the call. Grouped calls run as
/// one NCCL launch: all operands are transposed before the launch, and all
/// results after it.
class NcclGroup final : public CallGroup {
public:
  NcclGroup(std::shared_ptr<NcclLink> link, GroupName group, int place,
            SharedContext context);

  int size() const override { return static_cast<int>(its.ranks.size()); }
  int place() const override { return own; }

  void registerMemory(void *data, std::int64_t bytes) override;

  bool joins() const override { return context->joinsCollectives; }
  void together(const std::function<void()> &calls) override;

private:
  struct Work {
    Call call;
    const void *in = nullptr;
    void *out = nullptr;
  };

  void make(const Call &call, const void *in, void *out) override;
  void run(std::span<const Work> works);
  std::string wordsOf(std::span<const Work> works) const;
  /// Returns the scratch memory in bytes for the transposed operand
  /// (roomBefore), the transposed result (roomAfter) or both (roomFor) of a
  /// call. A tensor that needs no transposition needs 0 bytes.
  std::size_t roomBefore(const Call &call) const;
  std::size_t roomAfter(const Call &call) const;
  std::size_t roomFor(const Call &call) const {
    return roomBefore(call) + roomAfter(call);
  }

  /// Holds memory for transposed data. Successive launches share this memory.
  struct Scratch {
    std::byte *memory = nullptr;
    std::size_t size = 0;
    std::byte *of(std::size_t bytes, const NcclGroup &group);
  };

  const std::shared_ptr<NcclLink> link;
  const GroupName its;
  const int own;
  const SharedContext context;
  std::int64_t calls = 0;
  std::vector<Work> *collected = nullptr; ///< null: calls run immediately
  Scratch before, after;
  Event scratchIsFree;
  /// Identifies the capture in which `scratchIsFree` was recorded; is none if
  /// the event was recorded outside captures. A launch waits for the event only
  /// if the launch and the event belong to the same capture, or if neither
  /// belongs to a capture. Every other launch runs after the event without a
  /// wait.
  std::optional<unsigned long long> scratchsCapture;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H
