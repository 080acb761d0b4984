//===- nccl_group.h - The collectives of NCCL -------------------*- C++ -*-===//
//
// NCCL's data have one row. Several are rearranged before or after it, through
// memory that is made at the first call of a size, and kept. Calls that are
// made together are one launch of NCCL's: what they take is rearranged before
// it, and what they give behind it.
//
//===----------------------------------------------------------------------===//

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

  bool joins() const override { return context->joinsCollectives; }
  void together(const std::function<void()> &calls) override;

private:
  /// A call, and what NCCL makes of it.
  struct Work {
    Call call;
    const void *in = nullptr;
    void *out = nullptr;
    /// Whether rows of pieces of all places go in, or come out.
    bool packs = false, unpacks = false;
    std::function<ncclResult_t(const void *in, void *out, ncclComm_t comm,
                               cudaStream_t stream)>
        make;
  };

  /// At once, or with others.
  void make(Work work);
  void run(std::span<const Work> works);
  std::string wordsOf(std::span<const Work> works) const;
  /// Of the memory that it is rearranged in; 0: it is not.
  std::size_t roomFor(const Work &work, bool isWanted) const;
  std::size_t roomFor(const Work &work) const {
    return roomFor(work, work.packs) + roomFor(work, work.unpacks);
  }

  /// The link's memory for what is rearranged, of one launch after another.
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
  std::vector<Work> *collected = nullptr; ///< null: each is made at once
  Scratch before, after;
  Event scratchIsFree;
  /// What that was recorded in: who is not in it follows it anyway.
  std::optional<unsigned long long> scratchsCapture;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_GROUP_H
