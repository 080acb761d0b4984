//===- one_device_world.h - Ranks that share a device -----------*- C++ -*-===//

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

class OneDeviceGroup final : public CallGroup {
public:
  /// \param host  the same group in the host's world
  OneDeviceGroup(std::unique_ptr<Communicator> host, GroupName group,
                 SharedContext context);

  int size() const override { return host->size(); }
  int place() const override { return host->place(); }

private:
  class Session;

  void make(const Call &call, const void *in, void *out) override;

  /// Holds the events of one rank in a call. `arrived` means that the rank's
  /// buffers are ready, and `done` means that the rank no longer uses any
  /// buffer. A rank records an event again only after all ranks have waited for
  /// it.
  struct Marks {
    Event arrived, done;
  };

  const std::unique_ptr<Communicator> host;
  const GroupName its;
  const SharedContext context;
  std::vector<std::shared_ptr<Marks>> marks; ///< one per rank in the group
};

/// Connects ranks that are threads of one process. Kernels and copies of each
/// rank access the memory of all ranks. In every collective the threads
/// synchronize twice on the host: to exchange pointers, and after all threads
/// have queued their work. Events order the streams, so no thread waits for the
/// device, except in barrier(). With this world, plans of many ranks can run on
/// a single device, for example in tests.
class OneDeviceWorld final : public World {
public:
  /// \param host  must outlive this world; its ranks must be threads of this
  /// process
  OneDeviceWorld(World &host, SharedContext context);

  int size() const override { return host.size(); }
  int rank() const override { return host.rank(); }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override;
  /// Copies the data to a parcel. A large enough parcel is reused once the
  /// receiver has queued its copy of the data, so that usually only the first
  /// step allocates parcels.
  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override;
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override;

  /// Waits for the selected stream, and then for the other ranks.
  void barrier(const std::string &label) override;

  std::chrono::milliseconds patience() const override {
    return host.patience();
  }
  void check() override { host.check(); }
  /// Returns whether calls can be recorded. Calls of several ranks cannot,
  /// because these ranks synchronize on the host.
  bool isQueued() const override { return size() == 1; }
  void fail(const std::string &why) noexcept override { host.fail(why); }

private:
  /// Holds a buffer for messages between two ranks. Both ranks own the buffer.
  struct Parcel {
    explicit Parcel(std::size_t size) : memory(size), room(size) {}

    DeviceMemory memory;
    std::size_t room;
    std::int64_t bytes = 0;
    Event filled, emptied;
    std::atomic<bool> isEmptied{false}; ///< true once `emptied` is recorded
  };
  using SharedParcel = std::shared_ptr<Parcel>;
  /// Is the message by which the host's world passes a parcel to the receiver.
  struct Letter {
    SharedParcel *share = nullptr; ///< the receiver deletes it
  };

  SharedParcel emptyParcel(std::vector<SharedParcel> &all, std::size_t bytes);

  World &host;
  const SharedContext context;
  std::map<std::pair<int, int>, std::vector<SharedParcel>>
      parcels; ///< the key is the receiver and the channel
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H
