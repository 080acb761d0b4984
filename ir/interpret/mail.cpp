//===- mail.cpp - Messages and sums between pipeline stages ---------------===//

#include "ir/interpret/mail.h"

#include <numeric>

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Mail::send(Phase phase, std::int64_t from, Message message) {
  const auto to = static_cast<std::int64_t>(message.op.getTo());
  channels[{phase, from, to}].push_back(std::move(message));
}

FailureOr<std::optional<Message>> Mail::receive(Phase phase, ReceiveOp op,
                                                std::int64_t to,
                                                std::int64_t microBatch) {
  const auto from = static_cast<std::int64_t>(op.getFrom());
  std::deque<Message> &channel = channels[{phase, from, to}];
  if (channel.empty())
    return std::optional<Message>();
  Message oldest = channel.front();
  if (oldest.op.getLabel() != op.getLabel() ||
      oldest.microBatch != microBatch) {
    InFlightDiagnostic diagnostic = op.emitOpError("expects ")
                                    << op.getLabelAttr() << " of micro-batch "
                                    << microBatch << " from stage " << from;
    diagnostic.attachNote(oldest.op.getLoc())
        << "but " << oldest.op.getLabelAttr() << " of micro-batch "
        << oldest.microBatch << " comes first";
    return diagnostic;
  }
  channel.pop_front();
  return std::optional<Message>(std::move(oldest));
}

LogicalResult Mail::expectEmpty() const {
  for (const auto &[channel, messages] : channels)
    if (!messages.empty()) {
      const Message &lost = messages.front();
      SendOp op = lost.op;
      return op.emitOpError("sends ")
             << op.getLabelAttr() << " of micro-batch " << lost.microBatch
             << " to stage " << op.getTo() << ", which never receives it";
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

std::vector<std::int64_t> Mail::groupOf(AllReduceOp op) const {
  if (auto among = op.getAmong())
    return among->vec();
  std::vector<std::int64_t> all(static_cast<std::size_t>(stages));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

FailureOr<std::optional<std::vector<HostTensor>>>
Mail::join(AllReduceOp op, std::int64_t stage, const RankValues &value) {
  const Group group = groupOf(op);
  if (!llvm::is_contained(group, stage))
    return op.emitOpError("runs on stage ")
           << stage << ", which is not among those that it sums over";
  std::vector<GroupSum> &all = sums[group];
  std::size_t &next = finished[{group, stage}];
  if (next == all.size())
    all.push_back({op, {}});
  GroupSum &current = all[next];
  AllReduceOp first = current.first;
  if (first.getCause() != op.getCause() || first.getMax() != op.getMax() ||
      first.getType() != op.getType()) {
    InFlightDiagnostic diagnostic =
        op.emitOpError("is the next of stage ")
        << stage << ", for " << op.getCauseAttr()
        << ", but another stage of its group is at one for "
        << first.getCauseAttr();
    diagnostic.attachNote(first.getLoc()) << "which is here";
    return diagnostic;
  }
  current.passed.try_emplace(stage, value);
  if (current.passed.size() < group.size())
    return std::optional<std::vector<HostTensor>>();
  ++next;
  std::vector<HostTensor> sum = *current.passed.begin()->second;
  for (const auto &[member, values] : llvm::drop_begin(current.passed))
    for (auto [total, term] : llvm::zip_equal(sum, *values))
      reduceInto(total, term, op.getMax());
  return std::optional<std::vector<HostTensor>>(std::move(sum));
}

std::vector<std::int64_t> Mail::missingAt(AllReduceOp op,
                                          std::int64_t stage) const {
  std::vector<std::int64_t> missing;
  const Group group = groupOf(op);
  const auto all = sums.find(group);
  const auto next = finished.find({group, stage});
  if (all == sums.end() || next == finished.end() ||
      next->second >= all->second.size())
    return missing;
  for (std::int64_t member : group)
    if (!all->second[next->second].passed.count(member))
      missing.push_back(member);
  return missing;
}

} // namespace mtplan::ir
