//===- verify_streams.cpp - Verifies streams, launches and overlap --------===//

#include <map>

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYSTREAMSPASS
#include "passes/passes.h.inc"

namespace {

// Checks, in this order:
// - every operation that becomes an instruction has a stream;
// - the stream is in ir::kStreams;
// - fused operations are on one stream.
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

// Checks the operations of one launch, in this order:
// - all operations are on one stream;
// - all are products, or collectives over one axis with equal attributes
//   `mtp.overlapped` and `mtp.ahead`, or kernels of one name in an update;
// - no operation is an all-to-all or runs over stages;
// - no operation reads a result of another operation of the launch;
// - collectives and updates are consecutive.
LogicalResult verifyLaunch(ArrayRef<Operation *> launch) {
  Operation *first = launch.front();
  for (Operation *op : launch) {
    const auto fail = [&](const Twine &what) -> LogicalResult {
      InFlightDiagnostic error = op->emitOpError(what)
                                 << " in launch " << ir::batchOf(op);
      error.attachNote(first->getLoc()) << "the launch begins here";
      return error;
    };
    for (StringRef name :
         {StringRef(ir::kStreamAttrName), StringRef("axis"),
          StringRef(ir::kOverlappedAttrName), StringRef(ir::kAheadAttrName)})
      if (op->getAttr(name) != first->getAttr(name))
        return fail("has another '" + name + "' than the first");
    if (!axisOf(op) && op->getName() != first->getName())
      return fail("is of another kind than the first");
    if (llvm::isa<ir::AllToAllOp>(op) || sumsOverStages(op))
      return fail("cannot be grouped");
    for (Value operand : op->getOperands())
      if (llvm::is_contained(launch, operand.getDefiningOp()))
        return fail("reads the result of another operation");
  }
  if (llvm::isa<ir::EinsumOp>(first))
    return success();
  for (Operation *op = first; op != launch.back(); op = op->getNextNode())
    if (isInstruction(op) && !llvm::is_contained(launch, op))
      return op->emitOpError("is in the middle of launch ")
             << ir::batchOf(first);
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

LogicalResult verifyOverlap(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(ir::kOverlappedAttrName);
  if (!name || !llvm::isa<ir::AllReduceOp, ir::ReduceScatterOp>(op))
    return op->emitOpError("is no reduction that can overlap a backward");
  auto sum = llvm::dyn_cast_if_present<ir::AccumulatedOp>(originOf(op));
  for (auto segment : op->getParentOfType<ModuleOp>().getOps<ir::SegmentOp>())
    if (ir::BackwardOp backward = segment.getBackward();
        sum && backward && segment.getSymNameAttr() == name)
      for (auto term : backward.getBlock().getOps<ir::AccumulateOp>())
        if (term.getLabel() == sum.getLabel())
          return success();
  return op->emitOpError("overlaps the backward of ")
         << name << ", which does not make its gradient";
}

LogicalResult verifyAhead(Operation *op) {
  Value input = op->getNumOperands() == 1 ? op->getOperand(0) : Value();
  Operation *maker = input ? input.getDefiningOp() : nullptr;
  if (!llvm::isa<ir::AllGatherOp>(op) || !ir::isOfBlock(op) || !maker ||
      !(llvm::isa<ir::ParameterOp>(maker) || ir::isAhead(maker)))
    return op->emitOpError("is no gather of a parameter that can run ahead");
  for (Operation *user : op->getUsers())
    if (user->getBlock() != op->getBlock())
      return op->emitOpError(
          "runs ahead, but another program reads the result");
  return success();
}

struct VerifyStreams : impl::VerifyStreamsPassBase<VerifyStreams> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      if ((llvm::isa<ir::SegmentOp, ir::BackwardOp, ir::UpdateOp>(op) &&
           failed(verifyLaunches(op->getRegion(0).front()))) ||
          (ir::isOverlapped(op) && failed(verifyOverlap(op))) ||
          (ir::isAhead(op) && failed(verifyAhead(op))))
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
