//===- one_device_world.cpp - Ranks that share a device -------------------===//

#include "runtime/cuda/collectives/one_device_world.h"

#include <algorithm>

#include "runtime/communicator/call.h"
#include "runtime/communicator/reduce.h"
#include "runtime/cuda/collectives/place_kernels.h"

namespace mtplan::runtime::cuda {

namespace {

struct Contribution {
  const void *in = nullptr;
  void *out = nullptr;
};

template <typename T>
std::vector<T> gathered(Communicator &host, const std::string &label,
                        const T &mine) {
  static_assert(sizeof(T) % 4 == 0);
  std::vector<T> all(static_cast<std::size_t>(host.size()));
  host.allGather(label, &mine, all.data(),
                 {ElementType::i32, 1, sizeof(T) / 4});
  return all;
}

const char *offset(const void *data, std::int64_t bytes) {
  return static_cast<const char *>(data) + bytes;
}
char *offset(void *data, std::int64_t bytes) {
  return static_cast<char *>(data) + bytes;
}

} // namespace

/// Represents one call of the group. The constructor exchanges the buffers of
/// all ranks, and makes the stream wait until these buffers are ready. leave()
/// ends the call.
class OneDeviceGroup::Session {
public:
  Session(OneDeviceGroup &itsGroup, const Call &call, const void *in, void *out)
      : group(itsGroup), label(wordsOf(call)) {
    checkCall(call, group.its);
    contributions = {{in, out}};
    if (isAlone())
      return;
    MTPLAN_CUDA(cudaEventRecord(mine().arrived.get(), stream()));
    contributions = gathered(*group.host, label, Contribution{in, out});
    for (const auto &theirs : group.marks)
      wait(theirs->arrived);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// Makes the caller's stream wait until all ranks have finished.
  void leave() const {
    if (isAlone())
      return;
    MTPLAN_CUDA(cudaEventRecord(mine().done.get(), stream()));
    gathered(*group.host, label, Contribution{});
    for (const auto &theirs : group.marks)
      wait(theirs->done);
  }

  std::vector<const void *> sources(std::int64_t bytes = 0) const {
    std::vector<const void *> all;
    all.reserve(contributions.size());
    for (const Contribution &contribution : contributions)
      all.push_back(offset(contribution.in, bytes));
    return all;
  }
  std::vector<void *> outputs(std::int64_t bytes) const {
    std::vector<void *> all;
    all.reserve(contributions.size());
    for (const Contribution &contribution : contributions)
      all.push_back(offset(contribution.out, bytes));
    return all;
  }
  const Contribution &contribution(int place) const {
    return contributions[static_cast<std::size_t>(place)];
  }
  cudaStream_t stream() const { return group.context->stream().get(); }

private:
  bool isAlone() const { return group.size() == 1; }
  Marks &mine() const {
    return *group.marks[static_cast<std::size_t>(group.place())];
  }
  void wait(const Event &event) const {
    MTPLAN_CUDA(cudaStreamWaitEvent(stream(), event.get(), 0));
  }

  OneDeviceGroup &group;
  const std::string label;
  std::vector<Contribution> contributions;
};

OneDeviceGroup::OneDeviceGroup(std::unique_ptr<Communicator> itsHost,
                               GroupName group, SharedContext theContext)
    : host(std::move(itsHost)), its(std::move(group)),
      context(std::move(theContext)) {
  struct Place {
    const std::shared_ptr<Marks> *its;
  };
  if (size() == 1)
    return;
  const auto mine = std::make_shared<Marks>();
  for (const Place &place : gathered(*host, "events", Place{&mine}))
    marks.push_back(*place.its);
  // A second all-gather keeps `mine` alive until all ranks have copied it.
  gathered(*host, "events are shared", Contribution{});
}

void OneDeviceGroup::make(const Call &call, const void *in, void *out) {
  const auto [type, outer, inner] = call.pieces;
  const std::int64_t width = bytesOf(type), mine = place() * inner * width;
  const Session session(*this, call, in, out);
  switch (call.kind) {
  case CallKind::allReduce:
  case CallKind::reduce: {
    // Each rank reduces its own share of the elements. No other rank reads or
    // writes the elements of this share in any buffer.
    const Share share = shareOf(outer * inner, place(), size());
    const std::int64_t first = share.first * width;
    const std::vector<void *> outputs =
        call.kind == CallKind::allReduce
            ? session.outputs(first)
            : std::vector<void *>{
                  offset(session.contribution(call.root).out, first)};
    reducePlaces(*context, call.reduction, session.sources(first), outputs,
                 {type, 1, share.count, share.count});
    break;
  }
  case CallKind::allGather:
    gatherPlaces(*context, session.sources(), out, {type, outer, inner, inner});
    break;
  case CallKind::reduceScatter:
    reducePlaces(*context, call.reduction, session.sources(mine), {&out, 1},
                 {type, outer, inner, size() * inner});
    break;
  case CallKind::allToAll:
    gatherPlaces(*context, session.sources(mine), out,
                 {type, outer, inner, size() * inner});
    break;
  case CallKind::broadcast:
    if (const std::int64_t bytes = outer * inner * width;
        place() != call.root && bytes > 0)
      MTPLAN_CUDA(cudaMemcpyAsync(out, session.contribution(call.root).in,
                                  static_cast<std::size_t>(bytes),
                                  cudaMemcpyDeviceToDevice, session.stream()));
    break;
  case CallKind::barrier:
    break;
  }
  session.leave();
}

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
  // The receiver takes ownership of the pointer.
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
