//===- verify_gradients.cpp - Verifies that each gradient is used once ----===//

#include "llvm/ADT/MapVector.h"

#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYGRADIENTSPASS
#include "passes/passes.h.inc"

namespace {

template <typename Op>
llvm::DenseMap<StringAttr, SmallVector<Op>> byLabel(Block &block) {
  llvm::DenseMap<StringAttr, SmallVector<Op>> found;
  for (Op op : block.getOps<Op>())
    found[op.getLabelAttr()].push_back(op);
  return found;
}

// Checks that `ops` contains exactly one operator, and that the operator's
// value has the parameter's type.
template <typename Op>
LogicalResult checkOne(ir::ParameterOp parameter, SmallVector<Op> ops,
                       StringRef place, llvm::function_ref<Value(Op)> valueOf) {
  if (ops.size() != 1) {
    InFlightDiagnostic diagnostic =
        parameter.emitOpError("parameter ")
        << parameter.getLabelAttr() << " has " << ops.size() << " "
        << Op::getOperationName() << " in " << place << ", needs 1";
    for (Op op : ops)
      diagnostic.attachNote(op.getLoc()) << "one is here";
    return diagnostic;
  }
  Type found = valueOf(ops.front()).getType();
  Type needed = parameter.getValue().getType();
  if (found == needed)
    return success();
  InFlightDiagnostic diagnostic =
      parameter.emitOpError("parameter ")
      << parameter.getLabelAttr() << " of type " << needed << " gets a "
      << Op::getOperationName() << " of type " << found;
  diagnostic.attachNote(ops.front().getLoc()) << "here";
  return diagnostic;
}

struct VerifyGradientsPass
    : impl::VerifyGradientsPassBase<VerifyGradientsPass> {
  void runOnOperation() override {
    bool passed = true;
    llvm::DenseMap<StringAttr, SmallVector<ir::AdamwOp>> updates;
    for (auto update : getOperation().getOps<ir::UpdateOp>())
      updates = byLabel<ir::AdamwOp>(update.getBody().front());
    llvm::MapVector<StringAttr, ir::ParameterOp> parameters;
    for (auto segment : getOperation().getOps<ir::SegmentOp>())
      passed &= succeeded(checkSegment(segment, parameters));
    for (auto [label, parameter] : parameters)
      passed &= succeeded(checkOne<ir::AdamwOp>(
          parameter, updates.lookup(label), "the update",
          [](ir::AdamwOp op) -> Value { return op.getGradient(); }));
    if (!passed)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static LogicalResult
  checkSegment(ir::SegmentOp segment,
               llvm::MapVector<StringAttr, ir::ParameterOp> &parameters) {
    llvm::MapVector<StringAttr, ir::ParameterOp> read;
    for (auto op : segment.getBlock().getOps<ir::ParameterOp>())
      read.insert({op.getLabelAttr(), op});
    llvm::DenseMap<StringAttr, SmallVector<ir::AccumulateOp>> terms;
    if (ir::BackwardOp backward = segment.getBackward())
      terms = byLabel<ir::AccumulateOp>(backward.getBlock());
    std::string place = "the backward half of @" + segment.getSymName().str();
    bool passed = true;
    for (auto [label, parameter] : read) {
      parameters.insert({label, parameter});
      passed &= succeeded(checkOne<ir::AccumulateOp>(
          parameter, terms.lookup(label), place,
          [](ir::AccumulateOp op) -> Value { return op.getValue(); }));
    }
    return success(passed);
  }
};

} // namespace
} // namespace mtplan::passes
