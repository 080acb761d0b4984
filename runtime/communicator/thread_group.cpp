//===- thread_group.cpp - Collectives of thread ranks ---------------------===//

#include "runtime/communicator/thread_group.h"

#include "runtime/communicator/reduce.h"

namespace mtplan::runtime {

/// A call, from the arrival of all places until all have finished.
class ThreadGroup::Session {
public:
  Session(ThreadGroup &itsGroup, Call call, const void *in, void *out)
      : group(itsGroup) {
    Rendezvous &place = *group.rendezvous;
    checkCall(call, place.group());
    if (group.broken)
      throw CommunicationError(wordsOf(call, place.group()) +
                               ": a call before it has failed");
    group.broken = true;
    place.come(group.its, group.calls, {std::move(call), in, out});
    group.broken = false;
  }
  ~Session() { group.rendezvous->leave(group.calls++); }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const char *in(int place) const {
    return static_cast<const char *>(group.rendezvous->seat(place).in);
  }
  char *out(int place) const {
    return static_cast<char *>(group.rendezvous->seat(place).out);
  }

  /// Calls action(place) for all places, starting with this one, so that not
  /// all read from the same place at once.
  template <typename Do> void forEachPlace(const Do &action) const {
    for (int i = 0; i < group.size(); ++i)
      action((group.its + i) % group.size());
  }

private:
  ThreadGroup &group;
};

ThreadGroup::ThreadGroup(std::shared_ptr<Rendezvous> itsRendezvous, int place)
    : rendezvous(std::move(itsRendezvous)), its(place) {}

void ThreadGroup::allReduce(const std::string &label, const void *in, void *out,
                            Pieces pieces, Reduction reduction) {
  std::vector<const void *> sources(size());
  std::vector<void *> outputs(size());
  const Session session(*this, {CallKind::allReduce, label, pieces, reduction},
                        in, out);
  for (int q = 0; q < size(); ++q) {
    sources[q] = session.in(q);
    outputs[q] = session.out(q);
  }
  // No other place reads or writes this share, in any buffer.
  const Share share = shareOf(pieces.outer * pieces.inner, its, size());
  reduceInOrder(pieces.type, reduction, sources, outputs, share.first,
                share.count);
}

void ThreadGroup::reduce(const std::string &label, const void *in, void *out,
                         Pieces pieces, Reduction reduction, int root) {
  std::vector<const void *> sources(size());
  const Session session(
      *this, {CallKind::reduce, label, pieces, reduction, root}, in, out);
  for (int q = 0; q < size(); ++q)
    sources[q] = session.in(q);
  void *const output = session.out(root);
  const Share share = shareOf(pieces.outer * pieces.inner, its, size());
  reduceInOrder(pieces.type, reduction, sources, {&output, 1}, share.first,
                share.count);
}

void ThreadGroup::allGather(const std::string &label, const void *in, void *out,
                            Pieces pieces) {
  const Session session(*this, {CallKind::allGather, label, pieces}, in, out);
  const std::int64_t bytes = pieces.inner * bytesOf(pieces.type);
  session.forEachPlace([&](int q) {
    copyRows(static_cast<char *>(out) + q * bytes, size() * bytes,
             session.in(q), bytes, pieces.outer, bytes);
  });
}

void ThreadGroup::reduceScatter(const std::string &label, const void *in,
                                void *out, Pieces pieces, Reduction reduction) {
  std::vector<const void *> sources(size());
  const Session session(
      *this, {CallKind::reduceScatter, label, pieces, reduction}, in, out);
  const std::int64_t bytes = pieces.inner * bytesOf(pieces.type);
  for (std::int64_t row = 0; row < pieces.outer; ++row) {
    for (int q = 0; q < size(); ++q)
      sources[q] = session.in(q) + (row * size() + its) * bytes;
    void *const output = static_cast<char *>(out) + row * bytes;
    reduceInOrder(pieces.type, reduction, sources, {&output, 1}, 0,
                  pieces.inner);
  }
}

void ThreadGroup::allToAll(const std::string &label, const void *in, void *out,
                           Pieces pieces) {
  const Session session(*this, {CallKind::allToAll, label, pieces}, in, out);
  const std::int64_t bytes = pieces.inner * bytesOf(pieces.type);
  session.forEachPlace([&](int q) {
    copyRows(static_cast<char *>(out) + q * bytes, size() * bytes,
             session.in(q) + its * bytes, size() * bytes, pieces.outer, bytes);
  });
}

void ThreadGroup::broadcast(const std::string &label, void *data, Pieces pieces,
                            int root) {
  const Session session(
      *this, {CallKind::broadcast, label, pieces, Reduction::sum, root}, data,
      data);
  const std::int64_t bytes = pieces.outer * pieces.inner * bytesOf(pieces.type);
  if (its != root)
    copyRows(data, bytes, session.in(root), bytes, 1, bytes);
}

void ThreadGroup::barrier(const std::string &label) {
  const Session session(*this, {CallKind::barrier, label, {}}, nullptr,
                        nullptr);
}

} // namespace mtplan::runtime
