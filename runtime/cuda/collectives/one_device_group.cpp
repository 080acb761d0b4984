//===- one_device_group.cpp - Collectives on a shared device --------------===//

#include "runtime/cuda/collectives/one_device_group.h"

#include "runtime/communicator/reduce.h"
#include "runtime/cuda/collectives/place_kernels.h"

namespace mtplan::runtime::cuda {

namespace {

/// What a place brings to a call.
struct Seat {
  const void *in = nullptr;
  void *out = nullptr;
};

/// What every place brings, by place.
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

/// A call from when all have come until all have done their part.
class OneDeviceGroup::Session {
public:
  Session(OneDeviceGroup &itsGroup, const Call &call, const void *in, void *out)
      : group(itsGroup), label(wordsOf(call)) {
    checkCall(call, group.its);
    seats = {{in, out}};
    if (isAlone())
      return;
    MTPLAN_CUDA(cudaEventRecord(mine().arrived.get(), stream()));
    seats = gathered(*group.host, label, Seat{in, out});
    for (const auto &theirs : group.marks)
      wait(theirs->arrived);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// The caller's stream goes on when all are done.
  void leave() const {
    if (isAlone())
      return;
    MTPLAN_CUDA(cudaEventRecord(mine().done.get(), stream()));
    gathered(*group.host, label, Seat{});
    for (const auto &theirs : group.marks)
      wait(theirs->done);
  }

  std::vector<const void *> sources(std::int64_t bytes = 0) const {
    std::vector<const void *> all;
    all.reserve(seats.size());
    for (const Seat &seat : seats)
      all.push_back(offset(seat.in, bytes));
    return all;
  }
  std::vector<void *> outputs(std::int64_t bytes) const {
    std::vector<void *> all;
    all.reserve(seats.size());
    for (const Seat &seat : seats)
      all.push_back(offset(seat.out, bytes));
    return all;
  }
  const Seat &seat(int place) const {
    return seats[static_cast<std::size_t>(place)];
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
  std::vector<Seat> seats;
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
  // Not before all have taken their share.
  gathered(*host, "events are shared", Seat{});
}

// Nobody else reads or writes this place's share, in whichever buffer.
void OneDeviceGroup::allReduce(const std::string &label, const void *in,
                               void *out, Pieces pieces, Reduction reduction) {
  const Session session(*this, {CallKind::allReduce, label, pieces, reduction},
                        in, out);
  const Share share = shareOf(pieces.outer * pieces.inner, place(), size());
  const std::int64_t first = share.first * bytesOf(pieces.type);
  reducePlaces(*context, reduction, session.sources(first),
               session.outputs(first),
               {pieces.type, 1, share.count, share.count});
  session.leave();
}

void OneDeviceGroup::reduce(const std::string &label, const void *in, void *out,
                            Pieces pieces, Reduction reduction, int root) {
  const Session session(
      *this, {CallKind::reduce, label, pieces, reduction, root}, in, out);
  const Share share = shareOf(pieces.outer * pieces.inner, place(), size());
  const std::int64_t first = share.first * bytesOf(pieces.type);
  void *const output = offset(session.seat(root).out, first);
  reducePlaces(*context, reduction, session.sources(first), {&output, 1},
               {pieces.type, 1, share.count, share.count});
  session.leave();
}

void OneDeviceGroup::allGather(const std::string &label, const void *in,
                               void *out, Pieces pieces) {
  const Session session(*this, {CallKind::allGather, label, pieces}, in, out);
  gatherPlaces(*context, session.sources(), out,
               {pieces.type, pieces.outer, pieces.inner, pieces.inner});
  session.leave();
}

void OneDeviceGroup::reduceScatter(const std::string &label, const void *in,
                                   void *out, Pieces pieces,
                                   Reduction reduction) {
  const Session session(
      *this, {CallKind::reduceScatter, label, pieces, reduction}, in, out);
  const std::int64_t mine = place() * pieces.inner * bytesOf(pieces.type);
  reducePlaces(
      *context, reduction, session.sources(mine), {&out, 1},
      {pieces.type, pieces.outer, pieces.inner, size() * pieces.inner});
  session.leave();
}

void OneDeviceGroup::allToAll(const std::string &label, const void *in,
                              void *out, Pieces pieces) {
  const Session session(*this, {CallKind::allToAll, label, pieces}, in, out);
  const std::int64_t mine = place() * pieces.inner * bytesOf(pieces.type);
  gatherPlaces(
      *context, session.sources(mine), out,
      {pieces.type, pieces.outer, pieces.inner, size() * pieces.inner});
  session.leave();
}

void OneDeviceGroup::broadcast(const std::string &label, void *data,
                               Pieces pieces, int root) {
  const Session session(
      *this, {CallKind::broadcast, label, pieces, Reduction::sum, root}, data,
      data);
  const std::int64_t bytes = pieces.outer * pieces.inner * bytesOf(pieces.type);
  if (place() != root && bytes > 0)
    MTPLAN_CUDA(cudaMemcpyAsync(data, session.seat(root).in,
                                static_cast<std::size_t>(bytes),
                                cudaMemcpyDeviceToDevice, session.stream()));
  session.leave();
}

} // namespace mtplan::runtime::cuda
