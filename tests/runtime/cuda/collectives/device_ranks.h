//===- device_ranks.h - Ranks that are threads with devices -----*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_CUDA_COLLECTIVES_DEVICE_RANKS_H
#define MTPLAN_TESTS_RUNTIME_CUDA_COLLECTIVES_DEVICE_RANKS_H

#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/cuda/collectives/carrier.h"
#include "tests/emulator/streams.h"

namespace mtplan::runtime::testing {

/// Says whether all ranks share one device, or each rank has its own device.
/// NCCL connects the ranks only if each has its own.
enum class Devices { one, oneEach };

inline void PrintTo(Devices devices, std::ostream *out) {
  *out << (devices == Devices::one ? "one" : "one each");
}

/// Holds a rank's two worlds: `host` connects the hosts of the ranks, and
/// `world` their devices. The emulated device memory is host memory.
struct DeviceRank {
  World &host;
  World &world;
  cuda::SharedContext context;

  cudaStream_t stream() const { return context->stream().get(); }
  void finish() const { context->stream().synchronise(); }
};

inline void onDevices(Devices devices, int ranks, const WorldOptions &options,
                      const std::function<void(DeviceRank &)> &body) {
  emulator::setDevices(devices == Devices::one ? 1 : ranks);
  runOnThreads(ranks, options, [&](World &host) {
    cudaSetDevice(devices == Devices::one ? 0 : host.rank());
    const auto context = std::make_shared<cuda::Context>();
    const std::unique_ptr<World> world = cuda::makeCarrier(host, context);
    DeviceRank rank{host, *world, context};
    body(rank);
  });
}

inline std::vector<int> ranksUpTo(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

} // namespace mtplan::runtime::testing

#endif // MTPLAN_TESTS_RUNTIME_CUDA_COLLECTIVES_DEVICE_RANKS_H
