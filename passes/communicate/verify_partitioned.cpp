//===- verify_partitioned.cpp - Verifies the program of one rank ----------===//

#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYPARTITIONEDPASS
#include "passes/passes.h.inc"

namespace {

// Checks that each factor has one size on a rank in all operands and results,
// so that a shard of the wrong length is detected.
LogicalResult verifyFactors(ir::ComputeOp op) {
  ir::FactorRule rule = op.getFactorRule();
  auto check = [&](Value value, const ir::TensorFactors &dims, StringRef what,
                   unsigned index) -> LogicalResult {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    for (auto [d, factors] : llvm::enumerate(dims)) {
      if (factors.empty())
        continue;
      int64_t size = 1;
      for (int factor : factors)
        size *= rule.factors[factor].size;
      if (size != type.getDimSize(d))
        return op->emitOpError() << what << ' ' << index << " has "
                                 << type.getDimSize(d) << " along dimension "
                                 << d << " where the operator has " << size;
    }
    return success();
  };
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (failed(check(value, rule.operands[i], "operand", i)))
      return failure();
  for (auto [i, value] : llvm::enumerate(op->getResults()))
    if (failed(check(value, rule.results[i], "result", i)))
      return failure();
  return success();
}

struct VerifyPartitionedPass
    : impl::VerifyPartitionedPassBase<VerifyPartitionedPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (!module->hasAttr(ir::kPartitionedAttrName)) {
      module.emitError("is not partitioned");
      return signalPassFailure();
    }
    ir::MeshAttr mesh = ir::meshOf(module);
    module.walk([&](Operation *op) {
      if (llvm::isa<ir::ReshardOp>(op)) {
        op->emitOpError("is left in a partitioned module");
        signalPassFailure();
      }
      if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op))
        if (failed(verifyFactors(compute)))
          signalPassFailure();
      auto axis = op->getAttrOfType<StringAttr>("axis");
      if (axis && mesh && mesh.sizeOf(axis.getValue()) == 1) {
        op->emitOpError("runs over axis ") << axis << ", which has 1 rank";
        signalPassFailure();
      }
    });
  }
};

} // namespace
} // namespace mtplan::passes
