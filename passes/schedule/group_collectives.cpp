//===- group_collectives.cpp - Groups consecutive collectives -------------===//

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_GROUPCOLLECTIVESPASS
#include "passes/passes.h.inc"

namespace {

/// Limits the number of collectives per launch. Larger launches gain nothing.
constexpr std::size_t kMaxGroupSize = 64;

bool mayBeGrouped(Operation *op) {
  return llvm::isa<ir::AllReduceOp, ir::AllGatherOp, ir::ReduceScatterOp>(op) &&
         !sumsOverStages(op);
}

Attribute streamOf(Operation *op) { return op->getAttr(ir::kStreamAttrName); }

// Returns whether the operand of `op` is ready when the operand of `first` is
// ready, so that grouping delays neither collective. `first` must be an earlier
// collective on the stream of `op`.
bool isReadyWith(Operation *first, Operation *op) {
  Operation *maker = op->getOperand(0).getDefiningOp();
  if (!maker || maker->getBlock() != op->getBlock() ||
      llvm::isa<ir::ParameterOp, ir::AccumulatedOp>(maker))
    return true;
  if (!maker->isBeforeInBlock(first))
    return false;
  Operation *awaited = first->getOperand(0).getDefiningOp();
  return streamOf(maker) == streamOf(op) ||
         (awaited && awaited->getBlock() == maker->getBlock() &&
          streamOf(awaited) == streamOf(maker) &&
          !ir::fusionHeadOf(awaited)->isBeforeInBlock(ir::fusionHeadOf(maker)));
}

FailureOr<bool> areOfTheSameCopies(const StageContents &stage, Operation *one,
                                   Operation *other) {
  FailureOr<UpdatedCopies> copies = updatedCopies(stage, one),
                           others = updatedCopies(stage, other);
  if (failed(copies) || failed(others))
    return failure();
  return copies->first == others->first && copies->count == others->count;
}

// Returns whether `op` may be in the launch of `group`, the collectives right
// before it.
FailureOr<bool> mayJoin(const StageContents &stage, ArrayRef<Operation *> group,
                        Operation *op) {
  if (group.empty() || !mayBeGrouped(op) || group.size() == kMaxGroupSize)
    return false;
  Operation *first = group.front();
  if (axisOf(op) != axisOf(first) || streamOf(op) != streamOf(first) ||
      op->getAttr(ir::kOverlappedAttrName) !=
          first->getAttr(ir::kOverlappedAttrName) ||
      ir::isOfBlock(op) != ir::isOfBlock(first) ||
      ir::isAhead(op) != ir::isAhead(first) ||
      (!ir::isOfBlock(op) && !isReadyWith(first, op)) ||
      llvm::is_contained(group, op->getOperand(0).getDefiningOp()))
    return false;
  if (!llvm::isa<ir::UpdateOp>(op->getParentOp()))
    return true;
  return areOfTheSameCopies(stage, first, op);
}

LogicalResult group(const StageContents &stage, Block &block) {
  int64_t number = 0; // first number after the batched products
  for (Operation &op : block)
    if (mayBeGrouped(&op))
      op.removeAttr(ir::kBatchAttrName);
    else if (llvm::isa<ir::EinsumOp>(op))
      number = std::max(number, ir::batchOf(&op) + 1);
  SmallVector<Operation *> members;
  const auto close = [&] {
    Builder builder(block.getParent()->getContext());
    if (members.size() > 1) {
      for (Operation *op : members)
        op->setAttr(ir::kBatchAttrName, builder.getI64IntegerAttr(number));
      ++number;
    }
    members.clear();
  };
  for (Operation &op : block) {
    if (!isInstruction(&op))
      continue;
    FailureOr<bool> joins = mayJoin(stage, members, &op);
    if (failed(joins))
      return failure();
    if (!*joins)
      close();
    if (mayBeGrouped(&op))
      members.push_back(&op);
  }
  close();
  return success();
}

struct GroupCollectives : impl::GroupCollectivesPassBase<GroupCollectives> {
  void runOnOperation() override {
    for (const StageContents &stage : contentsOfStages(getOperation())) {
      for (ir::SegmentOp segment : stage.segments) {
        ir::BackwardOp backward = segment.getBackward();
        if (failed(group(stage, segment.getBlock())) ||
            (backward && failed(group(stage, backward.getBlock()))))
          return signalPassFailure();
      }
      ir::UpdateOp update = stage.update;
      if (update && failed(group(stage, update.getBody().front())))
        return signalPassFailure();
    }
  }
};

} // namespace

} // namespace mtplan::passes
