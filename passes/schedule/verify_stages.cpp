//===- verify_stages.cpp - Verifies communication between stages ----------===//

#include "passes/schedule/verify_stages.h"

#include "passes/layout/planner_op.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYSTAGESPASS
#include "passes/passes.h.inc"

namespace {

// Checks that chunks exchange values only by messages.
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

// Checks that chunks are numbered from 0 in order, and that all stages have
// equally many.
LogicalResult verifyChunks(ModuleOp module, int64_t stages) {
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
  int64_t count = previous ? static_cast<int64_t>(*previous.getChunk()) + 1 : 0;
  if (count % stages != 0)
    return previous.emitOpError("is of the last of ")
           << count << " chunks, which cannot be dealt out evenly to " << stages
           << " stages";
  return success();
}

struct VerifyStagesPass : impl::VerifyStagesPassBase<VerifyStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    ir::MeshAttr mesh = meshAround(module);
    int64_t stages = mesh ? mesh.sizeOf(ir::kStageAxis) : 0;
    if (stages == 0) {
      if (module->hasAttr(ir::kStagesAttrName)) {
        module.emitError("is not split over its stages");
        signalPassFailure();
      }
      return;
    }
    // Each check assumes that the previous checks passed.
    if (failed(verifyChunks(module, stages)) ||
        failed(verifyMessages(module, stages)) ||
        failed(verifyUpdates(module, stages)))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes
