//===- order_update.cpp - Equal work of an update is consecutive ----------===//

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

// Returns the sum of a gradient or of a report that `op` works on.
Operation *sumOf(Operation *op) {
  while (op->getNumOperands() > 0)
    op = op->getOperand(0).getDefiningOp();
  return op;
}

// Returns the number of steps from a gradient's sum to `op`, 0 for the sum.
int hopOf(Operation *op) {
  Operation *before =
      op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return before ? 1 + hopOf(before) : 0;
}

// Returns the last kernel of a backward program that adds to the gradient that
// an overlapped reduction reduces, or null if the program adds nothing to it.
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

// Orders reductions that overlap the backward: each hop comes behind the hop
// before, in the reverse order of readiness or, every second time, in the order
// of readiness.
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

// Orders the work on the gradients of the same copies.
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
    // The sums keep their order, whatever the order of what follows from them.
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

// Orders the updates of the same copies and what follows from them.
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
      Operations some; // for the same copies
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
