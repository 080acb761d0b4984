//===- carrier.cpp - Chooses how ranks on GPUs communicate ----------------===//

#include "runtime/cuda/collectives/carrier.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "runtime/communicator/call.h"
#include "runtime/cuda/collectives/one_device_world.h"
#include "runtime/cuda/collectives/place_kernels.h"

namespace mtplan::runtime::cuda {

namespace {

struct Whereabouts {
  std::array<char, 64> host{};
  std::int64_t process = 0, registers = 0, joins = 0;
  std::array<char, 16> device{};

  bool sharesProcess(const Whereabouts &other) const {
    return host == other.host && process == other.process;
  }
};

Whereabouts ownWhereabouts(const Context &context) {
  Whereabouts mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  mine.process = getpid();
  mine.registers = context.registersMemory ? 1 : 0;
  mine.joins = context.joinsCollectives ? 1 : 0;
  cudaDeviceProp properties{};
  MTPLAN_CUDA(cudaGetDeviceProperties(&properties, presentDevice()));
  std::memcpy(mine.device.data(), properties.uuid.bytes, mine.device.size());
  return mine;
}

std::vector<Whereabouts> allWhereabouts(World &host, const Context &context) {
  static_assert(sizeof(Whereabouts) % 4 == 0);
  const Whereabouts mine = ownWhereabouts(context);
  std::vector<Whereabouts> all(static_cast<std::size_t>(host.size()));
  host.allRanks("devices")->allGather(
      "where ranks are", &mine, all.data(),
      {ElementType::i32, 1, sizeof(Whereabouts) / 4});
  return all;
}

std::vector<int> ranksOn(const std::array<char, 16> &device,
                         const std::vector<Whereabouts> &all) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].device == device)
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

/// Throws CommunicationError unless a setting is equal on all ranks. The
/// message contains `what` and the name of the environment variable.
void checkAlike(const std::vector<Whereabouts> &all,
                std::int64_t Whereabouts::*told, const std::string &what,
                const std::string &variable) {
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].*told != all[0].*told) {
      std::string words = what;
      words += " by rank " + std::to_string(all[0].*told ? 0 : rank);
      words += " but not by rank " + std::to_string(all[0].*told ? rank : 0);
      words += ": set ";
      words += variable;
      throw CommunicationError(words + " to the same value on all ranks");
    }
}

[[noreturn]] void refuse(const std::string &what) {
  throw CommunicationError(
      what + ": give each rank a GPU of its own, or run all ranks as threads "
             "of one process on one GPU");
}

} // namespace

std::unique_ptr<World> makeCarrier(World &host, const SharedContext &context) {
  const std::vector<Whereabouts> all = allWhereabouts(host, *context);
  const std::size_t count = all.size();
  checkAlike(all, &Whereabouts::registers, "memory is registered with NCCL",
             "MTPLAN_NCCL_REGISTER");
  checkAlike(all, &Whereabouts::joins, "collectives are grouped",
             "MTPLAN_JOINT_COLLECTIVES");
  for (const Whereabouts &one : all) {
    const std::vector<int> sharing = ranksOn(one.device, all);
    if (sharing.size() == 1 && count > 1)
      continue;
    const std::string those =
        wordsOf(sharing) + " share a GPU of host " + one.host.data();
    if (sharing.size() < count)
      refuse(those + ", and the other " +
             std::to_string(count - sharing.size()) + " do not");
    if (!std::ranges::all_of(all, [&](const Whereabouts &other) {
          return other.sharesProcess(one);
        }))
      refuse(those + " and are not threads of one process");
    if (count > kMostPlaces)
      throw CommunicationError(std::to_string(count) +
                               " ranks share a GPU; at most " +
                               std::to_string(kMostPlaces) + " can");
    if (one.registers && count > 1)
      throw CommunicationError(
          those + ", which use no memory that is registered with NCCL" +
          kWithoutRegistration);
    return std::make_unique<OneDeviceWorld>(host, context);
  }
  return makeNcclWorld(host, context);
}

} // namespace mtplan::runtime::cuda
