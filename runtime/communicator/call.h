//===- call.h - The description of a collective call ------------*- C++ -*-===//
//
// The ranks of a group compare their calls, and error messages contain the
// calls.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_CALL_H
#define MTPLAN_RUNTIME_COMMUNICATOR_CALL_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

enum class CallKind {
  allReduce,
  allGather,
  reduceScatter,
  allToAll,
  reduce,
  broadcast,
  barrier
};

/// Describes a collective call of one rank. Unused members must have their
/// defaults, because calls are compared member by member.
struct Call {
  CallKind kind = CallKind::barrier;
  std::string label;
  Pieces pieces;
  Reduction reduction = Reduction::sum;
  int root = 0;

  bool operator==(const Call &) const = default;
};

/// Implements every collective by one call of make(). A broadcast passes its
/// buffer both as input and as output.
class CallGroup : public Communicator {
public:
  void allReduce(const std::string &label, const void *in, void *out,
                 Pieces pieces, Reduction reduction) final {
    make({CallKind::allReduce, label, pieces, reduction}, in, out);
  }
  void reduce(const std::string &label, const void *in, void *out,
              Pieces pieces, Reduction reduction, int root) final {
    make({CallKind::reduce, label, pieces, reduction, root}, in, out);
  }
  void allGather(const std::string &label, const void *in, void *out,
                 Pieces pieces) final {
    make({CallKind::allGather, label, pieces}, in, out);
  }
  void reduceScatter(const std::string &label, const void *in, void *out,
                     Pieces pieces, Reduction reduction) final {
    make({CallKind::reduceScatter, label, pieces, reduction}, in, out);
  }
  void allToAll(const std::string &label, const void *in, void *out,
                Pieces pieces) final {
    make({CallKind::allToAll, label, pieces}, in, out);
  }
  void broadcast(const std::string &label, void *data, Pieces pieces,
                 int root) final {
    make({CallKind::broadcast, label, pieces, Reduction::sum, root}, data,
         data);
  }
  void barrier(const std::string &label) {
    make({CallKind::barrier, label, {}}, nullptr, nullptr);
  }

protected:
  virtual void make(const Call &call, const void *in, void *out) = 0;
};

struct GroupName {
  std::string name;
  std::vector<int> ranks;

  bool operator==(const GroupName &) const = default;
  bool operator<(const GroupName &other) const {
    return std::tie(name, ranks) < std::tie(other.name, other.ranks);
  }
};

/// Formats a call: all-reduce "h.0.mlp.fc2" of 2 x 64 f32, sum
std::string wordsOf(const Call &call);

/// Formats a group: group "tp" (ranks 0 1 2)
std::string wordsOf(const GroupName &group);

/// Formats a call and its group, separated by ", in ".
std::string wordsOf(const Call &call, const GroupName &group);

/// Formats ranks: "rank 1", "ranks 1, 2 and 5"
std::string wordsOf(const std::vector<int> &ranks);

/// Formats a time: "8 s", "250 ms"
std::string wordsOf(std::chrono::milliseconds time);

/// Returns an error message, equal on all ranks, if a group's calls differ.
std::optional<std::string> mismatch(const std::vector<const Call *> &calls,
                                    const GroupName &group);

/// Returns an error message if rank `from` sends another label or size than
/// rank `to` expects.
std::optional<std::string> mismatchOfTransfer(int from, int to, int channel,
                                              const std::string &sentLabel,
                                              std::int64_t sentBytes,
                                              const std::string &label,
                                              std::int64_t bytes);

/// Formats a receive: receive "h.2" of 64 bytes from rank 1 on channel 3
std::string wordsOfReceive(const std::string &label, std::int64_t bytes,
                           int from, int channel);

std::uint64_t hashOf(const std::string &text,
                     std::uint64_t seed = 0xcbf29ce484222325);

/// Returns the index of `rank` in `group`. Throws CommunicationError unless the
/// group's ranks are distinct, below `size`, and include `rank`.
int placeIn(const GroupName &group, int rank, int size);

/// Throws CommunicationError unless the peer exists and `bytes` and `channel`
/// are >= 0.
void checkTransfer(const std::string &label, std::int64_t bytes, int peer,
                   int channel, int size);

/// Throws CommunicationError unless sizes are >= 0 and the root exists.
void checkCall(const Call &call, const GroupName &group);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_CALL_H
