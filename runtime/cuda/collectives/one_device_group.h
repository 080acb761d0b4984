//===- one_device_group.h - Collectives on a shared device ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_GROUP_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_GROUP_H

#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

class OneDeviceGroup final : public Communicator {
public:
  /// \param host  the same group, of threads of this process
  OneDeviceGroup(std::unique_ptr<Communicator> host, GroupName group,
                 SharedContext context);

  int size() const override { return host->size(); }
  int place() const override { return host->place(); }

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

  /// That a place's buffers are as its caller left them, and that it is done
  /// with all buffers. Recorded anew only when all have waited for them.
  struct Marks {
    Event arrived, done;
  };

  const std::unique_ptr<Communicator> host;
  const GroupName its;
  const SharedContext context;
  std::vector<std::shared_ptr<Marks>> marks; ///< by place; each has a share
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_GROUP_H
