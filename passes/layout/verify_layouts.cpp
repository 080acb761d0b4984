//===- verify_layouts.cpp - Verifies the layouts of all uses --------------===//

#include "passes/layout/planner_op.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYLAYOUTSPASS
#include "passes/passes.h.inc"

namespace {

class LayoutVerifier {
public:
  LayoutVerifier(ModuleOp m, const planner::Mesh &moduleMesh)
      : module(m), mesh(moduleMesh) {}

  LogicalResult verify() {
    bool sound = true;
    module.walk([&](Operation *op) {
      for (Value result : op->getResults())
        sound &= succeeded(fits(op, result));
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          sound &= succeeded(fits(op, argument));
      if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op))
        sound &= succeeded(verifyReads(compute));
      else if (auto reshard = llvm::dyn_cast<ir::ReshardOp>(op))
        sound &= succeeded(reads(op, reshard.getInput(),
                                 toPlanner(reshard.getSource(), mesh)));
      else if (auto yield = llvm::dyn_cast<ir::YieldOp>(op))
        sound &= succeeded(verifyYield(yield));
      else if (auto accumulate = llvm::dyn_cast<ir::AccumulateOp>(op))
        sound &= succeeded(verifyAccumulate(accumulate));
      else if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(op))
        sound &= succeeded(verifyUpdate(adamw));
      else if (auto store = llvm::dyn_cast<ir::StoreOp>(op))
        sound &= succeeded(readsAsStored(store, store.getValue()));
    });
    return success(sound);
  }

private:
  LogicalResult fits(Operation *op, Value value) {
    std::optional<planner::Layout> layout = layoutOf(value, mesh);
    if (!layout)
      return op->emitOpError("has no strategy or layout on mesh ")
             << toAttr(op->getContext(), mesh);
    auto type = llvm::cast<RankedTensorType>(value.getType());
    std::vector<std::int64_t> shape(type.getShape());
    if (layout->dims.size() != shape.size() ||
        !planner::divides(shape, *layout, mesh))
      return op->emitOpError("layout ")
             << planner::toString(*layout, mesh) << " does not divide " << type;
    if (llvm::isa<ir::InputOp>(op) && !layout->partial.empty())
      return op->emitOpError("layout ")
             << planner::toString(*layout, mesh)
             << " is partial, but data is read whole or in pieces";
    return success();
  }

  LogicalResult reads(Operation *op, Value value,
                      std::optional<planner::Layout> wanted) {
    std::optional<planner::Layout> made = layoutOf(value, mesh);
    if (!made || !wanted)
      return failure(); // fits() reports the missing layout
    if (*made == *wanted || isUsedAnyhow(value))
      return success();
    InFlightDiagnostic diagnostic = op->emitOpError("reads in layout ")
                                    << planner::toString(*wanted, mesh)
                                    << " a value that has layout "
                                    << planner::toString(*made, mesh);
    diagnostic.attachNote(value.getLoc()) << "made here";
    return diagnostic;
  }

  static bool isUsedAnyhow(Value value) {
    // A scalar input is the same number on every rank.
    return value.getDefiningOp<ir::InputOp>() &&
           llvm::cast<RankedTensorType>(value.getType()).getRank() == 0;
  }

  LogicalResult verifyReads(ir::ComputeOp op) {
    auto attr = op->getAttrOfType<ir::StrategyAttr>(ir::kStrategyAttrName);
    if (!attr)
      return failure(); // fits() reports the missing strategy
    planner::Op plain = toPlanner(op);
    std::optional<planner::Strategy> strategy = toPlanner(attr, plain, mesh);
    if (!strategy)
      return failure();
    bool sound = true;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      sound &= succeeded(
          reads(op, operand,
                planner::operandLayout(plain, *strategy, static_cast<int>(i))));
    return success(sound);
  }

  LogicalResult verifyYield(ir::YieldOp yield) {
    ArrayAttr layouts = yield.getLayoutsAttr();
    if (yield.getValues().empty())
      return success();
    if (!layouts || layouts.size() != yield.getValues().size())
      return yield.emitOpError("yields ")
             << yield.getValues().size() << " values but "
             << (layouts ? layouts.size() : 0) << " layouts";
    bool sound = true;
    for (auto [value, layout] : llvm::zip_equal(
             yield.getValues(), layouts.getAsRange<ir::LayoutAttr>()))
      sound &= succeeded(reads(yield, value, toPlanner(layout, mesh)));
    return success(sound);
  }

  LogicalResult verifyAccumulate(ir::AccumulateOp op) {
    if (!op.getLayout())
      return op.emitOpError("has no layout");
    return reads(op, op.getValue(), toPlanner(*op.getLayout(), mesh));
  }

  // Checks that the gradient has the layout of the parameter if the update is
  // in place, and otherwise the layout of the optimizer state.
  LogicalResult verifyUpdate(ir::AdamwOp op) {
    if (!op.getUpdated())
      return readsAsStored(op, op.getGradient());
    if (llvm::none_of(op.getUpdated().getUsers(), [](Operation *user) {
          return llvm::isa<ir::StoreOp, ir::ReshardOp>(user);
        }))
      return op.emitOpError("updates ")
             << op.getLabelAttr() << ", but nothing stores it";
    std::optional<planner::Layout> owned = layoutOf(op.getUpdated(), mesh);
    return owned ? reads(op, op.getGradient(), owned) : failure();
  }

  template <typename Op> LogicalResult readsAsStored(Op op, Value value) {
    for (auto segment : module.getOps<ir::SegmentOp>()) {
      if (op.getCopies() &&
          (*op.getCopies())[0] != static_cast<int64_t>(segment.getFirst()))
        continue;
      for (auto parameter : segment.getBlock().getOps<ir::ParameterOp>())
        if (parameter.getLabel() == op.getLabel())
          return reads(op, value, layoutOf(parameter.getValue(), mesh));
    }
    return op.emitOpError("updates ")
           << op.getLabelAttr() << ", which no segment reads";
  }

  ModuleOp module;
  const planner::Mesh &mesh;
};

struct VerifyLayoutsPass : impl::VerifyLayoutsPassBase<VerifyLayoutsPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    ir::MeshAttr attr = ir::meshOf(getOperation());
    if (!attr) {
      getOperation().emitError("has no mesh");
      return signalPassFailure();
    }
    planner::Mesh mesh = toPlanner(attr);
    if (failed(LayoutVerifier(getOperation(), mesh).verify()))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes
