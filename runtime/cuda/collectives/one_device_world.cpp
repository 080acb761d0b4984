//===- one_device_world.cpp - Ranks that share a device -------------------===//

#include "runtime/cuda/collectives/one_device_world.h"

#include <algorithm>

#include "runtime/communicator/call.h"
#include "runtime/cuda/collectives/one_device_group.h"

namespace mtplan::runtime::cuda {

OneDeviceWorld::OneDeviceWorld(World &itsHost, SharedContext theContext)
    : host(itsHost), context(std::move(theContext)) {}

std::unique_ptr<Communicator>
OneDeviceWorld::group(const std::string &name, const std::vector<int> &ranks) {
  return std::make_unique<OneDeviceGroup>(host.group(name, ranks),
                                          GroupName{name, ranks}, context);
}

OneDeviceWorld::SharedParcel
OneDeviceWorld::emptyParcel(std::vector<SharedParcel> &all, std::size_t bytes) {
  const auto found = std::ranges::find_if(all, [&](const SharedParcel &one) {
    return one->isEmptied && one->room >= bytes;
  });
  if (found == all.end())
    return all.emplace_back(std::make_shared<Parcel>(bytes));
  MTPLAN_CUDA(
      cudaStreamWaitEvent(context->stream().get(), (*found)->emptied.get(), 0));
  (*found)->isEmptied = false;
  return *found;
}

void OneDeviceWorld::send(const std::string &label, const void *data,
                          std::int64_t bytes, int to, int channel) {
  checkTransfer(label, bytes, to, channel, size());
  const auto size = static_cast<std::size_t>(bytes);
  const SharedParcel parcel = emptyParcel(parcels[{to, channel}], size);
  parcel->bytes = bytes;
  cudaStream_t stream = context->stream().get();
  if (size > 0)
    MTPLAN_CUDA(cudaMemcpyAsync(parcel->memory.get(), data, size,
                                cudaMemcpyDeviceToDevice, stream));
  MTPLAN_CUDA(cudaEventRecord(parcel->filled.get(), stream));
  // The receiver takes this share of it.
  auto share = std::make_unique<SharedParcel>(parcel);
  const Letter letter{share.get()};
  host.send(label, &letter, sizeof(letter), to, channel);
  static_cast<void>(share.release());
}

void OneDeviceWorld::receive(const std::string &label, void *data,
                             std::int64_t bytes, int from, int channel) {
  checkTransfer(label, bytes, from, channel, size());
  Letter letter;
  host.receive(label, &letter, sizeof(letter), from, channel);
  const std::unique_ptr<SharedParcel> owner(letter.share);
  Parcel &parcel = **owner;
  if (const auto words = mismatchOfTransfer(from, rank(), channel, label,
                                            parcel.bytes, label, bytes))
    throw CommunicationError(*words);
  cudaStream_t stream = context->stream().get();
  MTPLAN_CUDA(cudaStreamWaitEvent(stream, parcel.filled.get(), 0));
  if (bytes > 0)
    MTPLAN_CUDA(cudaMemcpyAsync(data, parcel.memory.get(),
                                static_cast<std::size_t>(bytes),
                                cudaMemcpyDeviceToDevice, stream));
  MTPLAN_CUDA(cudaEventRecord(parcel.emptied.get(), stream));
  parcel.isEmptied = true;
}

void OneDeviceWorld::barrier(const std::string &label) {
  context->stream().synchronise();
  host.barrier(label);
}

} // namespace mtplan::runtime::cuda
