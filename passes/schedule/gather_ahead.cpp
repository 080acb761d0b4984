//===- gather_ahead.cpp - Gathers weights while the previous run computes -===//

#include "ir/decisions.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_GATHERAHEADPASS
#include "passes/passes.h.inc"

namespace {

// Marks a program's gathers of weights (mtp.of_block) whose results no other
// program reads. If a gather reads the result of another gather, it is marked
// only if the other gather is marked, too.
void mark(Block &block) {
  for (auto gather : block.getOps<ir::AllGatherOp>()) {
    auto before = gather.getInput().getDefiningOp<ir::AllGatherOp>();
    const bool isOwn = llvm::all_of(gather->getUsers(), [&](Operation *user) {
      return user->getBlock() == &block;
    });
    if (ir::isOfBlock(gather) && isOwn && (!before || ir::isAhead(before)))
      gather->setAttr(ir::kAheadAttrName,
                      UnitAttr::get(block.front().getContext()));
  }
}

struct GatherAhead : impl::GatherAheadPassBase<GatherAhead> {
  void runOnOperation() override {
    for (auto segment : getOperation().getOps<ir::SegmentOp>()) {
      mark(segment.getBlock());
      if (ir::BackwardOp backward = segment.getBackward())
        mark(backward.getBlock());
    }
  }
};

} // namespace

} // namespace mtplan::passes
