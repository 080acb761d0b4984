//===- one_device_world.h - Ranks that share a device -----------*- C++ -*-===//
//
// The ranks are threads of one process. Each sees the others' memory, and reads
// what it needs with kernels of its own. In every call the threads meet twice
// on the host, to exchange pointers and events. Events order the streams, and
// no thread waits for the device. Plans of many ranks can thus be run, and
// compared, on a single device.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator/call.h"
#include "runtime/communicator/communicator.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

/// Collectives of ranks that share a device.
class OneDeviceGroup final : public CallGroup {
public:
  /// \param host  the same group, of threads of this process
  OneDeviceGroup(std::unique_ptr<Communicator> host, GroupName group,
                 SharedContext context);

  int size() const override { return host->size(); }
  int place() const override { return host->place(); }

private:
  class Session;

  void make(const Call &call, const void *in, void *out) override;

  /// Events of a place: its buffers are ready, and it is done with all buffers.
  /// They are recorded anew only when all places have waited for them.
  struct Marks {
    Event arrived, done;
  };

  const std::unique_ptr<Communicator> host;
  const GroupName its;
  const SharedContext context;
  std::vector<std::shared_ptr<Marks>> marks; ///< by place, shared by all places
};

/// The world of ranks that share a device.
class OneDeviceWorld final : public World {
public:
  /// \param host  outlives this world; its ranks are threads of this process
  OneDeviceWorld(World &host, SharedContext context);

  int size() const override { return host.size(); }
  int rank() const override { return host.rank(); }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override;
  /// Copies the data to memory of its own. It allocates when the receiver still
  /// needs all such memory, which does not happen after the first step.
  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override;
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override;

  /// Waits for the selected stream first.
  void barrier(const std::string &label) override;

  std::chrono::milliseconds patience() const override {
    return host.patience();
  }
  void check() override { host.check(); }
  /// Several ranks meet on the host in every call, so calls cannot be recorded.
  bool isQueued() const override { return size() == 1; }
  void fail(const std::string &why) noexcept override { host.fail(why); }

private:
  /// A message between two ranks, which both own.
  struct Parcel {
    explicit Parcel(std::size_t size) : memory(size), room(size) {}

    DeviceMemory memory;
    std::size_t room;
    std::int64_t bytes = 0;
    Event filled, emptied;
    std::atomic<bool> isEmptied{false}; ///< `emptied` has been recorded
  };
  using SharedParcel = std::shared_ptr<Parcel>;
  /// The message over the host.
  struct Letter {
    SharedParcel *share = nullptr; ///< the receiver's share of the ownership
  };

  SharedParcel emptyParcel(std::vector<SharedParcel> &all, std::size_t bytes);

  World &host;
  const SharedContext context;
  std::map<std::pair<int, int>, std::vector<SharedParcel>>
      parcels; ///< sent, by receiver and channel
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H
