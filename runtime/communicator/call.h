//===- call.h - What a rank says it is doing --------------------*- C++ -*-===//
//
// A collective as its caller described it, to be compared with what the others
// of the group call at the same time, and its words for messages.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_CALL_H
#define MTPLAN_RUNTIME_COMMUNICATOR_CALL_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
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

/// What does not matter to a kind keeps its default, so that equal calls are
/// equal in every member.
struct Call {
  CallKind kind = CallKind::barrier;
  std::string label;
  Pieces pieces;
  Reduction reduction = Reduction::sum;
  int root = 0;

  bool operator==(const Call &other) const;
};

/// Who calls together.
struct GroupName {
  std::string name;
  std::vector<int> ranks;

  bool operator==(const GroupName &) const = default;
  bool operator<(const GroupName &other) const;
};

/// all-reduce "h.0.mlp.fc2" of 2 x 64 f32, sum
std::string wordsOf(const Call &call);

/// group "tp" (ranks 0 1 2)
std::string wordsOf(const GroupName &group);

/// all-reduce "h.0.mlp.fc2" of 2 x 64 f32, sum, in group "tp" (ranks 0 1 2)
std::string wordsOf(const Call &call, const GroupName &group);

/// "rank 1", "ranks 1, 2 and 5"
std::string wordsOf(const std::vector<int> &ranks);

/// "8 s", "250 ms"
std::string wordsOf(std::chrono::milliseconds time);

/// What to say if the calls of a group, by place, are not the same; the same
/// words on every rank.
std::optional<std::string> mismatch(const std::vector<const Call *> &calls,
                                    const GroupName &group);

/// What to say if what `from` sends to `to` is not what `to` expects.
std::optional<std::string> mismatchOfTransfer(int from, int to, int channel,
                                              const std::string &sentLabel,
                                              std::int64_t sentBytes,
                                              const std::string &label,
                                              std::int64_t bytes);

/// receive "h.2" of 64 bytes from rank 1 on channel 3
std::string wordsOfReceive(const std::string &label, std::int64_t bytes,
                           int from, int channel);

/// Throws CommunicationError unless `group` has ranks of 0 .. size - 1, none
/// twice, and `rank` among them. Returns the place of `rank`.
int placeIn(const GroupName &group, int rank, int size);

/// Throws CommunicationError unless there is such a peer, bytes >= 0 and
/// channel >= 0.
void checkTransfer(const std::string &label, std::int64_t bytes, int peer,
                   int channel, int size);

/// Throws CommunicationError unless sizes are >= 0 and there is such a root.
void checkCall(const Call &call, const GroupName &group);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_CALL_H
