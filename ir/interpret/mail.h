//===- mail.h - Messages and sums between pipeline stages -------*- C++ -*-===//
//
// Pipeline stages run separate programs. Messages of one phase from one stage
// to another are received in the order in which they are sent, and sending
// never blocks. The stages of a group perform their all-reduces in one order.
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
  RankValues values; ///< by rank within the sender's stage
};

/// One all-reduce over a group of stages, with the values contributed so far.
struct GroupSum {
  AllReduceOp first; ///< operator of the first stage that contributed
  std::map<std::int64_t, RankValues> passed;
};

class Mail {
public:
  explicit Mail(std::int64_t stageCount) : stages(stageCount) {}

  void send(Phase phase, std::int64_t from, Message message);
  /// Removes and returns the oldest message of the channel, or nothing if it is
  /// empty. Fails, with a diagnostic, if the message has another label or
  /// micro-batch than `op` expects.
  mlir::FailureOr<std::optional<Message>>
  receive(Phase phase, ReceiveOp op, std::int64_t to, std::int64_t microBatch);

  /// Returns the stages that `op` sums over.
  std::vector<std::int64_t> groupOf(AllReduceOp op) const;
  /// Contributes a value to the next all-reduce of the group. Further calls of
  /// a waiting stage contribute nothing. Returns the sum once all stages of the
  /// group have contributed. Fails, with a diagnostic, if stages disagree on
  /// which all-reduce is next.
  mlir::FailureOr<std::optional<std::vector<HostTensor>>>
  join(AllReduceOp op, std::int64_t stage, const RankValues &value);
  /// Returns the stages that have not yet contributed to the all-reduce `op`
  /// for which `stage` waits.
  std::vector<std::int64_t> missingAt(AllReduceOp op, std::int64_t stage) const;

  /// Fails, with a diagnostic, if a message was sent but not received.
  mlir::LogicalResult expectEmpty() const;

private:
  using Channel = std::tuple<Phase, std::int64_t, std::int64_t>;
  using Group = std::vector<std::int64_t>;

  std::int64_t stages;
  std::map<Channel, std::deque<Message>> channels;
  std::map<Group, std::vector<GroupSum>> sums;
  /// Number of all-reduces of a group that a stage has finished.
  std::map<std::pair<Group, std::int64_t>, std::size_t> finished;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_MAIL_H
