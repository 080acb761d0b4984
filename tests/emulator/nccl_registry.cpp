//===- nccl_registry.cpp - Memory registered with NCCL --------------------===//

#include "tests/emulator/nccl_registry.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/emulator/machine.h"

namespace mtplan::emulator {
namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20;

using Ranges = std::map<const std::byte *, std::size_t>;

const std::byte *byteOf(const void *data) {
  return static_cast<const std::byte *>(data);
}

bool overlaps(const Ranges &ranges, const std::byte *first, std::size_t bytes) {
  return std::ranges::any_of(ranges, [&](const auto &range) {
    return first < range.first + range.second && range.first < first + bytes;
  });
}

bool isBusy(int device) {
  const std::lock_guard lock(machine().mutex);
  return std::ranges::any_of(machine().streams, [&](cudaStream_t stream) {
    return stream->device == device && !stream->work.empty();
  });
}

int presentDevice() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

} // namespace

NcclRegistry &ncclRegistry() {
  static NcclRegistry all;
  return all;
}

ncclResult_t NcclRegistry::allocate(void **data, std::size_t bytes) {
  if (checkDeviceChosen() != cudaSuccess ||
      whyNoMemoryNow("ncclMemAlloc") != cudaSuccess)
    return ncclUnhandledCudaError;
  const int device = presentDevice();
  const std::size_t length =
      (bytes + kGranularity - 1) / kGranularity * kGranularity;
  const std::lock_guard lock(mutex);
  if (unallocating.contains(device))
    return ncclUnhandledCudaError;
  *data = std::aligned_alloc(kGranularity, length);
  if (!*data)
    return ncclUnhandledCudaError;
  std::memset(*data, 0xA5, bytes); // New memory has undefined contents.
  pieces[byteOf(*data)] = {length, device};
  bytesTaken(device) += length;
  return ncclSuccess;
}

ncclResult_t NcclRegistry::free(void *data) {
  if (whyNoMemoryNow("ncclMemFree") != cudaSuccess)
    return ncclUnhandledCudaError;
  const bool busy = isBusy(presentDevice());
  const std::lock_guard lock(mutex);
  const auto found = pieces.find(byteOf(data));
  if (found == pieces.end()) {
    misuses.push_back("memory is freed that NCCL did not allocate");
    return ncclInvalidArgument;
  }
  for (const auto &[comm, member] : members)
    if (overlaps(member.ranges, found->first, found->second.bytes))
      misuses.push_back("memory is freed that is registered");
  if (busy)
    misuses.push_back("memory is freed while its device works");
  bytesTaken(found->second.device) -= found->second.bytes;
  pieces.erase(found);
  std::free(data);
  return ncclSuccess;
}

ncclResult_t NcclRegistry::enter(ncclComm_t comm, const void *data,
                                 std::size_t bytes, void **handle) {
  const std::byte *first = byteOf(data);
  const int device = presentDevice();
  const std::lock_guard lock(mutex);
  if (unregistering.contains(device))
    return ncclSystemError;
  if (std::ranges::none_of(pieces, [&](const auto &piece) {
        return piece.second.device == device && piece.first <= first &&
               first + bytes <= piece.first + piece.second.bytes;
      })) {
    misuses.push_back("memory is registered that NCCL did not allocate there");
    return ncclInvalidArgument;
  }
  Member &member = members[comm];
  if (overlaps(member.ranges, first, bytes)) {
    misuses.push_back("memory is registered twice");
    return ncclInvalidUsage;
  }
  member.ranges[first] = bytes;
  *handle = const_cast<std::byte *>(first);
  return ncclSuccess;
}

ncclResult_t NcclRegistry::leave(ncclComm_t comm, void *handle) {
  const std::lock_guard lock(mutex);
  if (members[comm].ranges.erase(byteOf(handle)) == 1)
    return ncclSuccess;
  misuses.push_back("memory is deregistered that is not registered");
  return ncclInvalidUsage;
}

void NcclRegistry::seeTogether(const std::vector<Operation> &operations,
                               int rank, int ranks) {
  const auto meet = [](const Touched &one, const Touched &other) {
    return (one.isWritten || other.isWritten) &&
           byteOf(one.data) < byteOf(other.data) + other.bytes &&
           byteOf(other.data) < byteOf(one.data) + one.bytes;
  };
  for (std::size_t late = 0; late < operations.size(); ++late)
    for (std::size_t early = 0; early < late; ++early)
      for (const Touched &one : touchedBy(operations[early], rank, ranks))
        for (const Touched &other : touchedBy(operations[late], rank, ranks))
          if (meet(one, other))
            return misuse("calls of a group touch what one of them writes");
}

void NcclRegistry::see(ncclComm_t comm, bool isTransfer,
                       const std::vector<Touched> &touched) {
  const std::lock_guard lock(mutex);
  Member &member = members[comm];
  const bool all = std::ranges::all_of(touched, [&](const Touched &place) {
    return std::ranges::any_of(member.ranges, [&](const auto &range) {
      const std::byte *first = byteOf(place.data);
      return range.first <= first &&
             first + place.bytes <= range.first + range.second;
    });
  });
  if (isTransfer)
    use.messages += all ? 1 : 0;
  else
    ++(all ? member.known : member.unknown);
}

void NcclRegistry::end(ncclComm_t comm, bool aborted) {
  const std::lock_guard lock(mutex);
  const Member member = std::exchange(members[comm], {});
  members.erase(comm);
  if (!aborted && !member.ranges.empty())
    misuses.push_back("a communicator ends that has memory registered");
  if (member.known > 0 && member.unknown > 0)
    ++use.mixed;
  else if (member.known > 0)
    ++use.registered;
  else if (member.unknown > 0)
    ++use.plain;
}

void NcclRegistry::misuse(const std::string &what) {
  const std::lock_guard lock(mutex);
  misuses.push_back(what);
}

void NcclFaults::failAllocation(int device) {
  const std::lock_guard lock(ncclRegistry().mutex);
  ncclRegistry().unallocating.insert(device);
}
void NcclFaults::failRegistration(int device) {
  const std::lock_guard lock(ncclRegistry().mutex);
  ncclRegistry().unregistering.insert(device);
}

std::vector<std::string> takeNcclMisuses() {
  const std::lock_guard lock(ncclRegistry().mutex);
  return std::exchange(ncclRegistry().misuses, {});
}
NcclUse takeNcclUse() {
  const std::lock_guard lock(ncclRegistry().mutex);
  return std::exchange(ncclRegistry().use, {});
}
int ncclAllocations() {
  const std::lock_guard lock(ncclRegistry().mutex);
  return static_cast<int>(ncclRegistry().pieces.size());
}

} // namespace mtplan::emulator

using namespace mtplan::emulator;

// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

ncclResult_t ncclMemAlloc(void **ptr, size_t size) {
  return ncclRegistry().allocate(ptr, size);
}
ncclResult_t ncclMemFree(void *ptr) { return ncclRegistry().free(ptr); }

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size,
                              void **handle) {
  if (isNcclOpen(comm))
    return ncclRegistry().enter(comm, buff, size, handle);
  ncclRegistry().misuse("memory is registered with what is no communicator");
  return ncclInvalidArgument;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) {
  if (isNcclOpen(comm))
    return ncclRegistry().leave(comm, handle);
  ncclRegistry().misuse("memory is deregistered with what is no communicator");
  return ncclInvalidArgument;
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
