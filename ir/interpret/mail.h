//===- mail.h - What stages of a pipeline wait for --------------*- C++ -*-===//
//
// Stages run programs of their own. Two stages share a channel for each
// direction, whose messages arrive in the order in which they were sent. The
// stages of a group sum one value after another. Sending never waits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_MAIL_H
#define MTPLAN_IR_INTERPRET_MAIL_H

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "ir/interpret/interpret.h"

namespace mtplan::ir {

struct Message {
  SendOp op;
  std::int64_t microBatch = 0;
  RankValues values; ///< by the place of the sender's rank within its stage
};

/// One sum over a group, with the values that its members have contributed.
struct GroupSum {
  AllReduceOp first; ///< operator that arrived first
  std::map<std::int64_t, RankValues> passed;
};

class Mail {
public:
  explicit Mail(std::int64_t stageCount) : stages(stageCount) {}

  void send(Phase phase, std::int64_t from, Message message);
  /// Takes the oldest message of the channel, or nothing if there is none yet.
  /// Fails, with a diagnostic, if the message is not the one that `op` names.
  mlir::FailureOr<std::optional<Message>>
  receive(Phase phase, ReceiveOp op, std::int64_t to, std::int64_t microBatch);

  /// Returns the stages that `op` sums over.
  std::vector<std::int64_t> groupOf(AllReduceOp op) const;
  /// Contributes a value to the next sum of the group. A stage that waits may
  /// call again without effect. Returns the sum once all stages of the group
  /// have contributed. Fails, with a diagnostic, if members disagree on which
  /// sum is next.
  mlir::FailureOr<std::optional<std::vector<HostTensor>>>
  join(AllReduceOp op, std::int64_t stage, const RankValues &value);
  /// Returns the members of the group of `op` that the waiting `stage` waits
  /// for.
  std::vector<std::int64_t> missingAt(AllReduceOp op, std::int64_t stage) const;

  /// Fails, with a diagnostic, if a message was sent and never received.
  mlir::LogicalResult expectEmpty() const;

private:
  using Channel = std::tuple<Phase, std::int64_t, std::int64_t>;
  using Group = std::vector<std::int64_t>;

  std::int64_t stages;
  std::map<Channel, std::deque<Message>> channels;
  std::map<Group, std::vector<GroupSum>> sums;
  /// The number of sums of a group that a stage has finished.
  std::map<std::pair<Group, std::int64_t>, std::size_t> finished;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_MAIL_H
