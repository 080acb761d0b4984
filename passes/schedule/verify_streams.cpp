//===- verify_streams.cpp - The gate behind the assignment of streams -----===//

#include <map>

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stages.h"

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

// Checks, in this order, of the operations of one launch:
// - they are on one stream;
// - all are products, all are collectives of one group, or all are kernels of
//   one name in an update;
// - none reads what another makes.
LogicalResult verifyLaunch(ArrayRef<Operation *> launch) {
  Operation *first = launch.front();
  for (Operation *op : launch) {
    const auto fail = [&](const char *what) -> LogicalResult {
      InFlightDiagnostic error = op->emitOpError(what);
      error << ir::batchOf(op);
      error.attachNote(first->getLoc()) << "the launch begins here";
      return error;
    };
    if (op->getAttr(ir::kStreamAttrName) != first->getAttr(ir::kStreamAttrName))
      return fail("is on another stream than the first of launch ");
    if (axisOf(op) != axisOf(first) || llvm::isa<ir::AllToAllOp>(op) ||
        (!axisOf(op) && op->getName() != first->getName()))
      return fail("is of another kind or group than the first of launch ");
    for (Value operand : op->getOperands())
      if (llvm::is_contained(launch, operand.getDefiningOp()))
        return fail("reads what another operation makes of launch ");
  }
  return success();
}

LogicalResult verifyLaunches(Block &block) {
  std::map<int64_t, SmallVector<Operation *>> launches;
  for (Operation &op : block)
    if (ir::batchOf(&op) >= 0)
      launches[ir::batchOf(&op)].push_back(&op);
  for (const auto &[number, launch] : launches)
    if (failed(verifyLaunch(launch)))
      return failure();
  return success();
}

struct VerifyStreams : impl::VerifyStreamsPassBase<VerifyStreams> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      if (llvm::isa<ir::SegmentOp, ir::BackwardOp, ir::UpdateOp>(op) &&
          failed(verifyLaunches(op->getRegion(0).front())))
        return WalkResult::interrupt();
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
