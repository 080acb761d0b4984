//===- mail.h - What stages of a pipeline wait for --------------*- C++ -*-===//
//
// Stages run programs of their own. Between them are channels, one a direction
// and pair of stages, whose messages arrive in the order in which they were
// sent; and groups, whose members sum what each of them holds, one sum after
// the other. Sending waits for nobody.
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
  RankValues values; ///< of the sender's ranks, by place within the stage
};

/// One sum over a group: what each member has brought to it.
struct Meeting {
  AllReduceOp first; ///< whose operator came first
  std::map<std::int64_t, RankValues> passed;
};

class Mail {
public:
  explicit Mail(std::int64_t stageCount) : stages(stageCount) {}

  void send(Phase phase, std::int64_t from, Message message);
  /// Takes the oldest message of the channel; empty: there is none yet. Fails,
  /// with a diagnostic, if it is not the one that `op` names.
  mlir::FailureOr<std::optional<Message>>
  receive(Phase phase, ReceiveOp op, std::int64_t to, std::int64_t microBatch);

  /// The stages that `op` sums over.
  std::vector<std::int64_t> groupOf(AllReduceOp op) const;
  /// Brings a value to the next sum of its group; again, while it waits, does
  /// no harm. The sum over all stages of the group, once the last has come.
  /// Fails, with a diagnostic, if members disagree on which sum is next.
  mlir::FailureOr<std::optional<std::vector<HostTensor>>>
  join(AllReduceOp op, std::int64_t stage, const RankValues &value);
  /// Members of the group of `op` that `stage`, which has come, waits for.
  std::vector<std::int64_t> missingAt(AllReduceOp op, std::int64_t stage) const;

  /// Fails, with a diagnostic, if a message was sent and never received.
  mlir::LogicalResult expectEmpty() const;

private:
  using Channel = std::tuple<Phase, std::int64_t, std::int64_t>;
  using Group = std::vector<std::int64_t>;

  std::int64_t stages;
  std::map<Channel, std::deque<Message>> channels;
  std::map<Group, std::vector<Meeting>> meetings;
  /// How many sums of a group a stage has been through.
  std::map<std::pair<Group, std::int64_t>, std::size_t> attended;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_MAIL_H
