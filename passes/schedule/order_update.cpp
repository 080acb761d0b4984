//===- order_update.cpp - Orders the operations of an update --------------===//

#include <map>

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_ORDERUPDATEPASS
#include "passes/passes.h.inc"

namespace {

using Operations = SmallVector<Operation *>;

Operation *sumOf(Operation *op) {
  while (op->getNumOperands() > 0)
    op = op->getOperand(0).getDefiningOp();
  return op;
}

// Returns the hop of `op`: the number of operations from the mtp.accumulated of
// a gradient to `op`, which is 0 for the mtp.accumulated itself.
int hopOf(Operation *op) {
  Operation *before =
      op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return before ? 1 + hopOf(before) : 0;
}

// Returns the kernel that completes the gradient of an overlapped reduction:
// the last kernel that adds to the gradient in the backward program that the
// reduction overlaps with. Returns null if there is no such kernel.
Operation *readyAfter(const StageContents &stage, Operation *reduction) {
  auto sum = llvm::dyn_cast<ir::AccumulatedOp>(originOf(reduction));
  auto beside = reduction->getAttrOfType<StringAttr>(ir::kOverlappedAttrName);
  if (!sum)
    return nullptr;
  Operation *last = nullptr;
  for (ir::SegmentOp segment : stage.segments)
    if (ir::BackwardOp backward = segment.getBackward();
        backward && segment.getSymNameAttr() == beside)
      for (auto op : backward.getBlock().getOps<ir::AccumulateOp>())
        if (op.getLabel() == sum.getLabel())
          last = op;
  return last ? ir::fusionHeadOf(last) : nullptr;
}

// Sorts overlapped reductions by hopOf() and then by segment. Within a hop and
// a segment, reductions are in the order in which their gradients become
// complete. Odd hops have the reverse order.
void sortOverlapped(const StageContents &stage, Operations &reductions) {
  llvm::stable_sort(reductions, [&](Operation *one, Operation *other) {
    const int hop = hopOf(one), otherHop = hopOf(other);
    if (hop != otherHop)
      return hop < otherHop;
    Operation *ready = readyAfter(stage, one),
              *otherReady = readyAfter(stage, other);
    if (ready->getBlock() != otherReady->getBlock()) {
      Operation *segment = ready->getParentOfType<ir::SegmentOp>();
      return segment->isBeforeInBlock(
          otherReady->getParentOfType<ir::SegmentOp>());
    }
    if (ready == otherReady)
      return false;
    return hop % 2 == 1 ? otherReady->isBeforeInBlock(ready)
                        : ready->isBeforeInBlock(otherReady);
  });
}

// Orders the operations on the gradients of one range of layers. The sums of
// micro-batches come first, then the overlapped reductions. All other
// operations are in the order of hopOf() or, if `keepsOrder`, in their present
// order.
Operations orderedGradients(const StageContents &stage, const Operations &all,
                            bool keepsOrder) {
  Operations sums, overlapped;
  std::map<int, Operations> hops;
  for (Operation *op : all)
    if (ir::isOverlapped(op))
      overlapped.push_back(op);
    else if (llvm::isa<ir::AccumulatedOp>(op))
      sums.push_back(op);
    else
      hops[keepsOrder ? 0 : hopOf(op)].push_back(op);
  sortOverlapped(stage, overlapped);
  Operations ordered = std::move(sums);
  llvm::append_range(ordered, overlapped);
  for (auto &[hop, some] : hops) {
    // Operations of one hop are in the order of their accumulators. For even
    // hops, this order is reversed.
    if (!keepsOrder)
      llvm::stable_sort(some, [&, turns = hop > 0 && hop % 2 == 0](
                                  Operation *one, Operation *other) {
        Operation *sum = sumOf(one), *otherSum = sumOf(other);
        return turns ? otherSum->isBeforeInBlock(sum)
                     : sum->isBeforeInBlock(otherSum);
      });
    llvm::append_range(ordered, some);
  }
  return ordered;
}

// Orders the updates of the same layers. Every mtp.adamw comes first. The
// operations on the results follow, in the reverse order of the updates.
// Offloaded updates keep their order.
Operations orderedUpdates(const Operations &all, bool offloads) {
  if (offloads)
    return all;
  Operations ordered, behind;
  for (Operation *op : all)
    if (llvm::isa<ir::AdamwOp>(op))
      ordered.push_back(op);
  for (Operation *adamw : llvm::reverse(ordered))
    for (Operation *op : all)
      if (op != adamw && ir::updatedBy(op) == adamw)
        behind.push_back(op);
  llvm::append_range(ordered, behind);
  return ordered;
}

struct OrderUpdate : impl::OrderUpdatePassBase<OrderUpdate> {
  using OrderUpdatePassBase::OrderUpdatePassBase;

  void runOnOperation() override {
    for (const StageContents &stage : contentsOfStages(getOperation()))
      if (stage.update && failed(order(stage)))
        return signalPassFailure();
  }

private:
  LogicalResult order(const StageContents &stage) {
    ir::UpdateOp update = stage.update;
    Block &block = update.getBody().front();
    const bool othersHavePart =
        llvm::any_of(block, [](Operation &op) { return sumsOverStages(&op); });
    for (const bool applies : {false, true}) {
      Operations some; // operations for the same layers
      std::optional<UpdatedCopies> copies;
      const auto move = [&] {
        for (Operation *op :
             applies ? orderedUpdates(some, offloads)
                     : orderedGradients(stage, some, othersHavePart))
          op->moveBefore(&block, block.end());
        some.clear();
      };
      Operations all;
      for (Operation &op : block)
        if (ir::isUpdated(&op) == applies)
          all.push_back(&op);
      for (Operation *op : all) {
        if (ir::isOverlapped(op) && !readyAfter(stage, op))
          return op->emitOpError("overlaps the backward of ")
                 << op->getAttr(ir::kOverlappedAttrName)
                 << ", which does not make its gradient";
        FailureOr<UpdatedCopies> next = updatedCopies(stage, op);
        if (failed(next))
          return failure();
        if (copies &&
            (copies->first != next->first || copies->count != next->count))
          move();
        copies = *next;
        some.push_back(op);
      }
      move();
    }
    return success();
  }
};

} // namespace

} // namespace mtplan::passes
