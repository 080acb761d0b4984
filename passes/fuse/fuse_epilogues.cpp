//===- fuse_epilogues.cpp - Fuses operators into their producers ----------===//

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "passes/passes.h.inc"

namespace {

void fuse(Operation *producer) {
  Operation *consumer = fusibleConsumerOf(producer);
  if (!consumer || ir::isFused(consumer))
    return;
  if (mayMoveAfter(consumer, producer))
    moveRightAfter(consumer, producer);
  else if (isUsedBefore(producer, consumer))
    return;
  else
    producer->moveBefore(consumer);
  consumer->setAttr(ir::kFusedAttrName,
                    StringAttr::get(consumer->getContext(), ir::kEpilogue));
}

struct FuseEpilogues : impl::FuseEpiloguesPassBase<FuseEpilogues> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (llvm::isa<ir::SegmentOp, ir::BackwardOp>(op))
        for (Operation &producer :
             llvm::make_early_inc_range(op->getRegion(0).front()))
          fuse(&producer);
    });
  }
};

} // namespace

} // namespace mtplan::passes
