//===- one_device_world.h - Ranks that share a device -----------*- C++ -*-===//
//
// For ranks that are threads of one process: each sees the others' memory, and
// takes what it needs out of it with kernels of its own. In every call the
// ranks' threads meet twice on the host, to tell each other pointers and
// events; events order their streams, and nobody waits for the device. So
// plans of many ranks can be run, and compared, on a single device.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

class OneDeviceWorld final : public World {
public:
  /// \param host  outlives it; its ranks are threads of this process
  OneDeviceWorld(World &host, SharedContext context);

  int size() const override { return host.size(); }
  int rank() const override { return host.rank(); }

  std::unique_ptr<Communicator> group(const std::string &name,
                                      const std::vector<int> &ranks) override;
  /// Copies into memory that is its own, which is made when there is none left
  /// that the receiver is done with: after the first step there is enough.
  void send(const std::string &label, const void *data, std::int64_t bytes,
            int to, int channel) override;
  void receive(const std::string &label, void *data, std::int64_t bytes,
               int from, int channel) override;

  /// After all that this rank has queued on the selected stream.
  void barrier(const std::string &label) override;

  std::chrono::milliseconds patience() const override {
    return host.patience();
  }
  void check() override { host.check(); }
  /// Others' threads would have to meet.
  bool isQueued() const override { return size() == 1; }
  void fail(const std::string &why) noexcept override { host.fail(why); }

private:
  /// A message between two ranks; both hold it.
  struct Parcel {
    explicit Parcel(std::size_t size) : memory(size), room(size) {}

    DeviceMemory memory;
    std::size_t room;
    std::int64_t bytes = 0;
    Event filled, emptied;
    std::atomic<bool> isEmptied{false}; ///< `emptied` has been recorded
  };
  using SharedParcel = std::shared_ptr<Parcel>;
  /// What the host carries of it.
  struct Letter {
    SharedParcel *share = nullptr; ///< of who receives it
  };

  SharedParcel emptyParcel(std::vector<SharedParcel> &all, std::size_t bytes);

  World &host;
  const SharedContext context;
  std::map<std::pair<int, int>, std::vector<SharedParcel>>
      parcels; ///< sent, by receiver and channel
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_ONE_DEVICE_WORLD_H
