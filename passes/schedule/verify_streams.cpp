//===- verify_streams.cpp - The gate behind the assignment of streams -----===//

#include "ir/decisions.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYSTREAMSPASS
#include "passes/passes.h.inc"

namespace {

// Checks, in this order:
// - every operation that becomes an instruction has a stream;
// - the stream is one of those that a plan may have;
// - operations that are fused are on one stream.
LogicalResult verify(Operation *op) {
  auto stream = op->getAttrOfType<StringAttr>(ir::kStreamAttrName);
  if (!stream)
    return op->emitOpError("has no stream");
  if (!llvm::is_contained(ir::kStreams, std::string_view(stream.getValue())))
    return op->emitOpError("is on stream ") << stream << ", which is unknown";
  Operation *head = ir::fusionHeadOf(op);
  if (head->getAttr(ir::kStreamAttrName) != stream)
    return op->emitOpError("is on stream ")
           << stream << ", but fused with an operation on "
           << head->getAttr(ir::kStreamAttrName);
  return success();
}

struct VerifyStreams : impl::VerifyStreamsPassBase<VerifyStreams> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      const bool runs =
          llvm::isa_and_present<ir::SegmentOp, ir::BackwardOp, ir::UpdateOp>(
              op->getParentOp()) &&
          !llvm::isa<ir::ParameterOp, ir::BackwardOp, ir::YieldOp>(op);
      return runs && failed(verify(op)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

} // namespace mtplan::passes
