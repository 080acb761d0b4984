//===- verify_stages.cpp - Gate: what stages say to each other matches ----===//

#include "llvm/ADT/MapVector.h"

#include "passes/layout/planner_op.h"
#include "passes/passes.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYSTAGESPASS
#include "passes/passes.h.inc"

namespace {

/// One end of a message.
struct End {
  Operation *op = nullptr;
  bool sends = false, backward = false;
  int64_t chunk = 0, stage = 0, peer = 0;
  StringAttr label;
  Type type;
};

class StageVerifier {
public:
  StageVerifier(ModuleOp m, int64_t stageCount)
      : module(m), stages(stageCount) {}

  LogicalResult verify() {
    // Each relies on the ones before.
    if (failed(verifyChunks()))
      return failure();
    collectEnds();
    if (failed(verifyPairs()) || failed(verifyOrder()))
      return failure();
    return verifyUpdates();
  }

private:
  LogicalResult verifyChunks() {
    ir::SegmentOp previous;
    for (auto segment : module.getOps<ir::SegmentOp>()) {
      if (!segment.getChunk())
        return segment.emitOpError("has no chunk, but the mesh has an axis of "
                                   "stages");
      uint64_t before = previous ? *previous.getChunk() : 0;
      uint64_t chunk = *segment.getChunk();
      if (chunk != before && (!previous || chunk != before + 1))
        return segment.emitOpError("is of chunk ")
               << chunk << " after chunk " << before;
      if (previous && chunk != before &&
          failed(verifyBoundary(previous, segment)))
        return failure();
      previous = segment;
    }
    return success();
  }

  // Between chunks there are messages and nothing else.
  LogicalResult verifyBoundary(ir::SegmentOp last, ir::SegmentOp first) {
    auto refuse = [](Operation *op, std::size_t count, StringRef what) {
      return op->emitOpError("hands ")
             << count << ' ' << what
             << " to another stage, which only mtp.send can";
    };
    if (std::size_t count = last.getYield().getValues().size())
      return refuse(last, count, "values");
    if (ir::BackwardOp half = first.getBackward())
      if (std::size_t count = half.getYield().getValues().size())
        return refuse(first, count, "gradients");
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Messages
  //===--------------------------------------------------------------------===//

  template <typename Op> End endOf(Op op, bool sends, uint64_t peer) {
    auto segment = op->template getParentOfType<ir::SegmentOp>();
    return {op,
            sends,
            !!op->template getParentOfType<ir::BackwardOp>(),
            static_cast<int64_t>(*segment.getChunk()),
            stageOf(segment, stages),
            static_cast<int64_t>(peer),
            op.getLabelAttr(),
            op.getValue().getType()};
  }

  void collectEnds() {
    module.walk([&](Operation *op) {
      if (auto send = llvm::dyn_cast<ir::SendOp>(op))
        ends.push_back(endOf(send, true, send.getTo()));
      else if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op))
        ends.push_back(endOf(receive, false, receive.getFrom()));
    });
  }

  static InFlightDiagnostic fault(const End &end, const End &other,
                                  const Twine &what) {
    InFlightDiagnostic diagnostic = end.op->emitOpError(what);
    diagnostic.attachNote(other.op->getLoc()) << "the other end is here";
    return diagnostic;
  }

  LogicalResult verifyPairs() {
    llvm::MapVector<StringAttr, std::pair<const End *, const End *>> pairs;
    for (const End &end : ends) {
      auto &pair = pairs[end.label];
      const End *&place = end.sends ? pair.first : pair.second;
      if (place)
        return fault(end, *place,
                     end.sends ? "sends what is sent already"
                               : "receives what another one does");
      place = &end;
      auto segment = end.op->getParentOfType<ir::SegmentOp>();
      if (segment.getRepeat() > 1)
        return end.op->emitOpError("is in a segment that repeats ")
               << segment.getRepeat() << " times, but is one message";
    }
    for (auto &[label, pair] : pairs) {
      auto [send, receive] = pair;
      if (!send || !receive)
        return (send ? send : receive)->op->emitOpError()
               << (send ? "sends " : "receives ") << label << ", which nobody "
               << (send ? "receives" : "sends");
      if (failed(verifyPair(*send, *receive)))
        return failure();
    }
    return success();
  }

  static LogicalResult verifyPair(const End &send, const End &receive) {
    if (send.type != receive.type)
      return fault(receive, send, "receives ")
             << receive.type << " where " << send.type << " is sent";
    if (send.peer != receive.stage)
      return fault(send, receive, "sends to stage ")
             << send.peer << ", but stage " << receive.stage << " receives it";
    if (receive.peer != send.stage)
      return fault(receive, send, "receives from stage ")
             << receive.peer << ", but stage " << send.stage << " sends it";
    if (send.backward != receive.backward)
      return fault(send, receive, "is of one half, its other end of the other");
    if (receive.chunk != send.chunk + (send.backward ? -1 : 1))
      return fault(send, receive, "goes from chunk ")
             << send.chunk << " to chunk " << receive.chunk
             << ", which is not the "
             << (send.backward ? "one before" : "next");
    return success();
  }

  // One direction from chunk to chunk is one queue.
  LogicalResult verifyOrder() {
    using Queue = std::pair<bool, int64_t>; // direction, the sender's chunk
    std::map<Queue,
             std::pair<std::vector<const End *>, std::vector<const End *>>>
        queues;
    for (const End &end : ends) {
      int64_t sender =
          end.sends ? end.chunk : end.chunk + (end.backward ? 1 : -1);
      auto &queue = queues[{end.backward, sender}];
      (end.sends ? queue.first : queue.second).push_back(&end);
    }
    for (auto &[key, queue] : queues)
      for (auto [send, receive] : llvm::zip_equal(queue.first, queue.second))
        if (send->label != receive->label)
          return fault(*receive, *send, "receives ")
                 << receive->label << " where " << send->label << " is sent";
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Updates
  //===--------------------------------------------------------------------===//

  LogicalResult verifyUpdates() {
    std::map<int64_t, ir::UpdateOp> updates;
    for (auto update : module.getOps<ir::UpdateOp>()) {
      if (!update.getStage())
        return update.emitOpError("is of no stage, but the mesh has an axis of "
                                  "stages");
      updates[static_cast<int64_t>(*update.getStage())] = update;
      for (auto read : update.getBody().front().getOps<ir::AccumulatedOp>())
        if (failed(verifySum(read)))
          return failure();
    }
    return updates.empty() ? success()
                           : failure(failed(verifyHolders(updates)) ||
                                     failed(verifySums(updates)));
  }

  // What several stages add to is summed over all of them, and nothing else.
  LogicalResult verifySum(ir::AccumulatedOp read) {
    std::set<int64_t> holders = holdersOf(read, stages);
    auto update = llvm::cast<ir::UpdateOp>(read->getParentOp());
    auto own = static_cast<int64_t>(*update.getStage());
    if (!holders.count(own))
      return read.emitOpError("of stage ")
             << own << " reads what no segment of it adds to";
    bool shared = holders.size() > 1 && !read.getLabel().contains('*');
    Operation *sum = nullptr;
    for (Value value = read.getValue(); value && value.hasOneUse();) {
      Operation *user = *value.getUsers().begin();
      if (!user->getAttrOfType<StringAttr>("axis"))
        break;
      if (sumsOverStages(user)) {
        if (sum)
          return user->emitOpError("sums ") << read.getLabelAttr() << " again";
        sum = user;
      }
      value = user->getResult(0);
    }
    std::vector<int64_t> group(holders.begin(), holders.end());
    if (shared && !sum)
      return read.emitOpError("is held by ")
             << holders.size() << " stages, over which it is not summed";
    if (!sum)
      return success();
    auto among = llvm::cast<ir::AllReduceOp>(sum).getAmong();
    bool all = !among && static_cast<int64_t>(group.size()) == stages;
    if (shared && (all || (among && *among == ArrayRef<int64_t>(group))))
      return success();
    InFlightDiagnostic diagnostic = sum->emitOpError("sums ")
                                    << read.getLabelAttr()
                                    << " over other stages than hold it: ";
    llvm::interleaveComma(group, diagnostic);
    return diagnostic;
  }

  // Every stage updates what its segments read.
  LogicalResult verifyHolders(const std::map<int64_t, ir::UpdateOp> &updates) {
    for (auto segment : module.getOps<ir::SegmentOp>()) {
      int64_t stage = stageOf(segment, stages);
      auto update = updates.find(stage);
      for (auto parameter : segment.getBlock().getOps<ir::ParameterOp>()) {
        bool updated = false;
        if (update != updates.end()) {
          ir::UpdateOp own = update->second;
          for (auto adamw : own.getBody().front().getOps<ir::AdamwOp>())
            updated |= adamw.getLabel() == parameter.getLabel();
        }
        if (!updated)
          return parameter.emitOpError("is read on stage ")
                 << stage << ", which does not update it";
      }
    }
    return success();
  }

  // The members of a group come to its sums in one order.
  LogicalResult verifySums(const std::map<int64_t, ir::UpdateOp> &updates) {
    std::map<std::vector<int64_t>,
             std::map<int64_t, std::vector<ir::AllReduceOp>>>
        groups;
    for (auto [stage, update] : updates)
      for (auto sum : update.getBody().front().getOps<ir::AllReduceOp>())
        if (sumsOverStages(sum) && sum.getAmong())
          groups[sum.getAmong()->vec()][stage].push_back(sum);
    for (auto &[group, members] : groups) {
      auto &first = members.begin()->second;
      for (auto &[stage, sums] : members)
        for (std::size_t i = 0; i < sums.size(); ++i)
          if (i >= first.size() || sums[i].getCause() != first[i].getCause()) {
            InFlightDiagnostic diagnostic = sums[i].emitOpError("is sum ")
                                            << i << " of stage " << stage;
            diagnostic.attachNote(first[std::min(i, first.size() - 1)].getLoc())
                << "but of another stage of its group it is this one";
            return diagnostic;
          }
    }
    return success();
  }

  ModuleOp module;
  int64_t stages;
  std::vector<End> ends; ///< in program order
};

struct VerifyStagesPass : impl::VerifyStagesPassBase<VerifyStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    ir::MeshAttr mesh = meshAround(module);
    if (!mesh || mesh.sizeOf(ir::kStageAxis) == 0) {
      if (module->hasAttr(ir::kStagesAttrName)) {
        module.emitError("is not split over its stages");
        signalPassFailure();
      }
      return;
    }
    if (failed(StageVerifier(module, mesh.sizeOf(ir::kStageAxis)).verify()))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes
