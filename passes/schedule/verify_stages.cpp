//===- verify_stages.cpp - Verifies communication between stages ----------===//
//
// Stages exchange messages and sums. A message or sum causes a deadlock if the
// other stage lacks it or reaches it in another order. Results are wrong if a
// message or sum is matched with a different message or sum of the other stage.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/MapVector.h"

#include "passes/passes.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYSTAGESPASS
#include "passes/passes.h.inc"

namespace {

struct End {
  Operation *op = nullptr;
  bool sends = false, backward = false;
  ir::SegmentOp segment;
  int64_t chunk = 0, stage = 0, peer = 0;
  StringAttr label;
  Value value;
};

InFlightDiagnostic fault(const End &end, const End &other, const Twine &what) {
  InFlightDiagnostic diagnostic = end.op->emitOpError(what);
  diagnostic.attachNote(other.op->getLoc()) << "the other end is here";
  return diagnostic;
}

// Returns the operand number of `value` in `yield`, or nothing unless this
// operand is the only use of `value`.
std::optional<unsigned> placeIn(ir::YieldOp yield, Value value) {
  if (!value.hasOneUse() || value.use_begin()->getOwner() != yield)
    return std::nullopt;
  return value.use_begin()->getOperandNumber();
}

/// Checks that messages have matching senders and receivers in the same order,
/// and that a gradient returns to the sender of its value. All segments of the
/// module must have chunks.
class MessageVerifier {
public:
  MessageVerifier(ModuleOp m, int64_t stageCount)
      : module(m), stages(stageCount) {}

  LogicalResult verify() {
    collectEnds();
    return failure(failed(verifyPairs()) || failed(verifyOrder()) ||
                   failed(verifyGradients()));
  }

private:
  template <typename Op>
  void addEnd(Op op, ir::SegmentOp segment, bool sends, uint64_t peer) {
    ends.push_back({op, sends, llvm::isa<ir::BackwardOp>(op->getParentOp()),
                    segment, static_cast<int64_t>(*segment.getChunk()),
                    stageOf(segment, stages), static_cast<int64_t>(peer),
                    op.getLabelAttr(), op.getValue()});
  }

  void addEnds(ir::SegmentOp segment, Block &half) {
    for (Operation &op : half)
      if (auto send = llvm::dyn_cast<ir::SendOp>(op))
        addEnd(send, segment, /*sends=*/true, send.getTo());
      else if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op))
        addEnd(receive, segment, /*sends=*/false, receive.getFrom());
  }

  // Collects the ends in execution order; backward runs segments in reverse.
  void collectEnds() {
    SmallVector<ir::SegmentOp> segments(module.getOps<ir::SegmentOp>());
    for (ir::SegmentOp segment : segments)
      addEnds(segment, segment.getBlock());
    for (ir::SegmentOp segment : llvm::reverse(segments))
      if (ir::BackwardOp half = segment.getBackward())
        addEnds(segment, half.getBlock());
  }

  LogicalResult verifyPairs() {
    for (const End &end : ends) {
      auto &pair = pairs[end.label];
      const End *&place = end.sends ? pair.first : pair.second;
      if (place)
        return fault(end, *place,
                     end.sends
                         ? "sends a message that another operator sends"
                         : "receives a message that another operator receives");
      place = &end;
      ir::SegmentOp segment = end.segment;
      if (segment.getRepeat() > 1)
        return end.op->emitOpError("is in a segment that repeats ")
               << segment.getRepeat() << " times, but is one message";
    }
    for (auto &[label, pair] : pairs) {
      auto [send, receive] = pair;
      if (!send || !receive)
        return (send ? send : receive)->op->emitOpError()
               << (send ? "sends " : "receives ") << label
               << ", which no operator " << (send ? "receives" : "sends");
      if (failed(verifyPair(*send, *receive)))
        return failure();
    }
    return success();
  }

  static LogicalResult verifyPair(const End &send, const End &receive) {
    if (send.value.getType() != receive.value.getType())
      return fault(receive, send, "receives ")
             << receive.value.getType() << " where " << send.value.getType()
             << " is sent";
    if (send.peer != receive.stage)
      return fault(send, receive, "sends to stage ")
             << send.peer << ", but stage " << receive.stage << " receives it";
    if (receive.peer != send.stage)
      return fault(receive, send, "receives from stage ")
             << receive.peer << ", but stage " << send.stage << " sends it";
    if (send.backward != receive.backward)
      return fault(
          send, receive,
          "is in one half of its segment, and its other end in the other");
    if (receive.chunk != send.chunk + (send.backward ? -1 : 1))
      return fault(send, receive, "goes from chunk ")
             << send.chunk << " to chunk " << receive.chunk
             << ", which is not the "
             << (send.backward ? "one before" : "next");
    return success();
  }

  // Checks that messages of one direction between two chunks are received in
  // the order in which they are sent.
  LogicalResult verifyOrder() {
    using Queue = std::pair<bool, int64_t>; // direction and the sender's chunk
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

  // Checks the gradient that is received in return for a sent argument of a
  // segment. The segment must yield this gradient for the same argument.
  LogicalResult verifyGradients() {
    for (auto &[label, pair] : pairs)
      if (!pair.first->backward &&
          failed(verifyGradient(*pair.first, *pair.second)))
        return failure();
    return success();
  }

  LogicalResult verifyGradient(const End &send, const End &receive) {
    ir::SegmentOp from = send.segment, to = receive.segment;
    ir::BackwardOp here = from.getBackward(), there = to.getBackward();
    auto sent = llvm::dyn_cast<BlockArgument>(send.value);
    auto yielded = placeIn(to.getYield(), receive.value);
    if (!sent || !yielded || !here || !there ||
        *yielded >= there.getBlock().getNumArguments())
      return success();
    for (Operation *user : there.getBlock().getArgument(*yielded).getUsers()) {
      auto sender = llvm::dyn_cast<ir::SendOp>(user);
      if (!sender)
        continue;
      const End &back = *pairs.lookup(sender.getLabelAttr()).second;
      if (back.segment != from)
        continue;
      auto place = placeIn(here.getYield(), back.value);
      if (!place || *place == sent.getArgNumber())
        continue;
      InFlightDiagnostic diagnostic =
          back.op->emitOpError("is yielded as the gradient of argument ")
          << *place << ", but is that of argument " << sent.getArgNumber();
      diagnostic.attachNote(send.op->getLoc()) << "the value is sent here";
      return diagnostic;
    }
    return success();
  }

  ModuleOp module;
  int64_t stages;
  std::vector<End> ends; ///< in execution order
  llvm::MapVector<StringAttr, std::pair<const End *, const End *>>
      pairs; ///< sender and receiver by label
};

LogicalResult verifyBoundary(ir::SegmentOp last, ir::SegmentOp first) {
  auto reject = [](Operation *op, std::size_t count, StringRef what) {
    return op->emitOpError("yields ")
           << count << ' ' << what
           << " to another stage, which only mtp.send can do";
  };
  if (std::size_t count = last.getYield().getValues().size())
    return reject(last, count, "values");
  if (ir::BackwardOp half = first.getBackward())
    if (std::size_t count = half.getYield().getValues().size())
      return reject(first, count, "gradients");
  return success();
}

LogicalResult verifyBoundaries(ModuleOp module) {
  ir::SegmentOp previous;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    if (previous && segment.getChunk() != previous.getChunk() &&
        failed(verifyBoundary(previous, segment)))
      return failure();
    previous = segment;
  }
  return success();
}

struct VerifyStagesPass : impl::VerifyStagesPassBase<VerifyStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    ir::MeshAttr mesh = ir::meshOf(module);
    int64_t stages = mesh ? mesh.sizeOf(ir::kStageAxis) : 0;
    if (stages == 0) {
      if (module->hasAttr(ir::kStagesAttrName)) {
        module.emitError("is not split over its stages");
        signalPassFailure();
      }
      return;
    }
    // Each check assumes that the previous checks passed.
    if (failed(checkChunks(module, stages)) ||
        failed(verifyBoundaries(module)) ||
        failed(MessageVerifier(module, stages).verify()) ||
        failed(verifyUpdates(module, stages)))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes
