//===- nccl_group.h - The collectives of NCCL -------------------*- C++ -*-===//
//
// NCCL's data have one row. Several are rearranged before or after it, through
// memory that is made at the first call of a size, and kept.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H

#include <memory>
#include <optional>
#include <string>

#include "runtime/communicator/call.h"
#include "runtime/cuda/collectives/nccl/nccl_link.h"

namespace mtplan::runtime::cuda {

class NcclGroup final : public Communicator {
public:
  NcclGroup(std::shared_ptr<NcclLink> link, GroupName group, int place,
            SharedContext context);

  int size() const override { return static_cast<int>(its.ranks.size()); }
  int place() const override { return own; }

  void registerMemory(void *data, std::int64_t bytes) override;

  void allReduce(const std::string &label, const void *in, void *out,
                 Pieces pieces, Reduction reduction) override;
  void reduce(const std::string &label, const void *in, void *out,
              Pieces pieces, Reduction reduction, int root) override;
  void allGather(const std::string &label, const void *in, void *out,
                 Pieces pieces) override;
  void reduceScatter(const std::string &label, const void *in, void *out,
                     Pieces pieces, Reduction reduction) override;
  void allToAll(const std::string &label, const void *in, void *out,
                Pieces pieces) override;
  void broadcast(const std::string &label, void *data, Pieces pieces,
                 int root) override;

private:
  class Session;

  /// The link's memory for what is rearranged, of one call after another.
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
  Scratch before, after;
  Event scratchIsFree;
  /// What that was recorded in: who is not in it follows it anyway.
  std::optional<unsigned long long> scratchsCapture;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H
