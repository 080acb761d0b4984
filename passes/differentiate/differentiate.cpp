//===- differentiate.cpp - From a model to a training step ----------------===//
//
// Visits the operators of each segment in reverse order and builds the gradient
// of each operator. The backward half reads activations of the forward half
// directly.
// After planning, recompute() in passes/schedule may recompute activations.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"

#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/passes.h.inc"

namespace {

// Returns whether all segments have a backward half and the module has an
// update. Fails if the module has some of these parts (backward halves, update)
// but not all.
FailureOr<bool> isDifferentiated(ModuleOp module) {
  SmallVector<ir::SegmentOp> lacking;
  int segments = 0;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    ++segments;
    if (!segment.getBackward())
      lacking.push_back(segment);
  }
  auto updates = module.getOps<ir::UpdateOp>();
  bool hasUpdate = !updates.empty();
  auto found = segments - static_cast<int>(lacking.size());
  if (lacking.empty() && segments > 0 && hasUpdate)
    return true;
  if (found == 0 && !hasUpdate)
    return false;
  return module.emitError("is differentiated in part: ")
         << found << " of " << segments << " segments have an mtp.backward, "
         << (hasUpdate ? 1 : 0) << " of 1 mtp.update is there";
}

LogicalResult checkEnd(ModuleOp module) {
  ir::SegmentOp last;
  for (auto segment : module.getOps<ir::SegmentOp>())
    last = segment;
  if (!last || last.getYield().getValues().empty())
    return success();
  return last.getYield().emitOpError("yields ")
         << last.getYield().getValues().size() << " values, but @"
         << last.getSymName() << " is the last segment";
}

// Accumulates `loss` under `label`, unless an operator already accumulates it.
void accumulateLoss(Operation *loss, StringRef label) {
  if (llvm::any_of(loss->getUsers(), [](Operation *reader) {
        return llvm::isa<ir::AccumulateOp>(reader);
      }))
    return;
  OpBuilder builder(loss->getContext());
  builder.setInsertionPointAfter(loss);
  builder.create<ir::AccumulateOp>(loss->getLoc(), label, loss->getResult(0),
                                   ir::LayoutAttr());
}

// Accumulates every loss, and fails if there is no mtp.token_loss. Balance
// losses keep their own labels, because every layer has a balance loss.
LogicalResult accumulateLosses(ModuleOp module) {
  int losses = 0;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    for (auto loss : segment.getBlock().getOps<ir::TokenLossOp>()) {
      ++losses;
      accumulateLoss(loss, "loss");
    }
    for (auto loss : segment.getBlock().getOps<ir::BalanceLossOp>())
      accumulateLoss(loss, loss.getLabel());
  }
  if (losses == 0)
    return module.emitError("has no mtp.token_loss to differentiate");
  return success();
}

/// Maps each operator to the parameters of which the operator is the first
/// reader, in the order of its operands. Backward visits the first reader of a
/// parameter after all other readers, so the parameter's gradient is complete
/// after this visit.
using CompletedAt = llvm::DenseMap<Operation *, SmallVector<ir::ParameterOp>>;

// Fails if a segment has two mtp.parameter of one label, because each would
// accumulate only a part of the gradient.
LogicalResult checkReads(ir::SegmentOp segment) {
  llvm::MapVector<StringAttr, ir::ParameterOp> seen;
  for (auto parameter : segment.getBlock().getOps<ir::ParameterOp>()) {
    auto [entry, isNew] = seen.insert({parameter.getLabelAttr(), parameter});
    if (isNew)
      continue;
    InFlightDiagnostic diagnostic =
        parameter.emitOpError("parameter ")
        << parameter.getLabelAttr() << " is read a second time in @"
        << segment.getSymName() << ", needs one mtp.parameter per segment";
    diagnostic.attachNote(entry->second.getLoc()) << "the first is here";
    return diagnostic;
  }
  return success();
}

CompletedAt findFirstReaders(Block &block) {
  CompletedAt completed;
  llvm::DenseSet<Operation *> seen;
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      if (auto parameter = operand.getDefiningOp<ir::ParameterOp>())
        if (seen.insert(parameter).second)
          completed[&op].push_back(parameter);
  return completed;
}

// Fails unless every yielded value can have a gradient and depends on a
// parameter. Arguments depend on a parameter, because the previous segment
// yields them.
LogicalResult checkYields(ir::SegmentOp segment) {
  llvm::DenseSet<Value> trained;
  for (BlockArgument argument : segment.getBlock().getArguments())
    trained.insert(argument);
  for (Operation &op : segment.getBlock())
    if (llvm::isa<ir::ParameterOp>(op) ||
        llvm::any_of(op.getOperands(),
                     [&](Value value) { return trained.contains(value); }))
      for (Value result : op.getResults())
        trained.insert(result);
  ir::YieldOp yield = segment.getYield();
  for (auto [i, value] : llvm::enumerate(yield.getValues())) {
    if (!ir::GradientBuilder::wants(value))
      return yield.emitOpError("value ")
             << i << " of @" << segment.getSymName() << ", of type "
             << value.getType() << ", has no gradient";
    if (!trained.contains(value))
      return yield.emitOpError("value ") << i << " of @" << segment.getSymName()
                                         << " depends on no parameter";
  }
  return success();
}

LogicalResult accumulate(Operation *op, const CompletedAt &completed,
                         ir::GradientBuilder &gradients) {
  for (ir::ParameterOp parameter : completed.lookup(op)) {
    Value gradient = gradients.gradientOf(parameter.getValue());
    if (!gradient)
      return parameter.emitOpError("parameter ")
             << parameter.getLabelAttr() << " does not reach the loss";
    gradients.builder.create<ir::AccumulateOp>(
        parameter.getLoc(), parameter.getLabel(), gradient, ir::LayoutAttr());
  }
  return success();
}

LogicalResult buildGradients(ir::SegmentOp segment, const CompletedAt &ready,
                             ir::GradientBuilder &gradients) {
  for (Operation &op : llvm::reverse(segment.getBlock())) {
    if (llvm::isa<ir::BackwardOp, ir::InputOp, ir::AccumulateOp>(op))
      continue;
    if (auto parameter = llvm::dyn_cast<ir::ParameterOp>(op)) {
      if (parameter.getValue().use_empty())
        return parameter.emitOpError("parameter ")
               << parameter.getLabelAttr() << " does not reach the loss";
      continue;
    }
    if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op)) {
      if (failed(compute.buildGradient(gradients)))
        return failure();
    } else if (!llvm::isa<ir::YieldOp>(op)) {
      return op.emitOpError("has no gradient: differentiate before planning");
    }
    if (failed(accumulate(&op, ready, gradients)))
      return failure();
  }
  return success();
}

// Returns whether `segment` does not read `argument`, and the previous segment
// passes one of its own arguments on as `argument`. In this case, the gradient
// of `argument` is 0.
bool isLeftOver(ir::SegmentOp segment, BlockArgument argument) {
  auto before = llvm::dyn_cast_or_null<ir::SegmentOp>(segment->getPrevNode());
  return argument.use_empty() && before &&
         llvm::isa<BlockArgument>(
             before.getYield().getValues()[argument.getArgNumber()]);
}

// Adds an mtp.backward to `segment`, which must have none. A parameter's
// gradient is accumulated as soon as it is complete, so that its reduction can
// overlap with the rest of backward. Fails, with a diagnostic, if a yielded
// value depends on no parameter, or an argument or parameter gets no gradient.
LogicalResult buildBackward(ir::SegmentOp segment) {
  if (failed(checkReads(segment)) || failed(checkYields(segment)))
    return failure();
  Block &forward = segment.getBlock();
  CompletedAt completed = findFirstReaders(forward);
  ir::YieldOp yield = segment.getYield();
  OpBuilder builder(yield);
  auto backward = builder.create<ir::BackwardOp>(segment.getLoc(), ArrayAttr());
  Block &block = backward.getBody().emplaceBlock();
  builder.setInsertionPointToStart(&block);
  ir::GradientBuilder gradients(builder);
  for (Value value : yield.getValues())
    gradients.add(value, block.addArgument(value.getType(), value.getLoc()),
                  segment.getSymName());
  if (failed(buildGradients(segment, completed, gradients)))
    return failure();
  SmallVector<Value> yielded;
  for (BlockArgument argument : forward.getArguments()) {
    Value gradient = gradients.gradientOf(argument);
    if (!gradient && isLeftOver(segment, argument))
      gradient = builder.create<ir::ZerosOp>(
          segment.getLoc(), argument.getType(),
          (segment.getSymName() + ".zeros" + Twine(argument.getArgNumber()))
              .str());
    if (!gradient)
      return segment.emitOpError("argument ")
             << argument.getArgNumber() << " does not reach the loss";
    yielded.push_back(gradient);
  }
  builder.create<ir::YieldOp>(segment.getLoc(), yielded, ArrayAttr());
  return success();
}

struct Accumulator {
  Location location;
  Type type;
};
using Accumulators = llvm::MapVector<StringAttr, Accumulator>;

// Returns the parameters of the forward halves. The verifier of mtp.parameter
// checks that each label has one type.
Accumulators findParameters(ModuleOp module) {
  Accumulators found;
  for (auto segment : module.getOps<ir::SegmentOp>())
    for (auto op : segment.getBlock().getOps<ir::ParameterOp>())
      found.insert({op.getLabelAttr(), {op.getLoc(), op.getValue().getType()}});
  return found;
}

FailureOr<Accumulators> findScalars(ModuleOp module) {
  Accumulators found;
  for (auto segment : module.getOps<ir::SegmentOp>())
    for (auto op : segment.getBlock().getOps<ir::AccumulateOp>()) {
      Type type = op.getValue().getType();
      auto [entry, isNew] =
          found.insert({op.getLabelAttr(), {op.getLoc(), type}});
      if (isNew || entry->second.type == type)
        continue;
      InFlightDiagnostic diagnostic = op.emitOpError("accumulates ")
                                      << type << " into " << op.getLabelAttr()
                                      << ", which is " << entry->second.type;
      diagnostic.attachNote(entry->second.location) << "since here";
      return diagnostic;
    }
  return found;
}

LogicalResult buildUpdate(ModuleOp module) {
  FailureOr<Accumulators> scalars = findScalars(module);
  if (failed(scalars))
    return failure();
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto update = builder.create<ir::UpdateOp>(module.getLoc());
  builder.setInsertionPointToStart(&update.getBody().emplaceBlock());
  auto read = [&](StringAttr label, const Accumulator &accumulator) {
    return builder
        .create<ir::AccumulatedOp>(accumulator.location, accumulator.type,
                                   label, ir::LayoutAttr(), DenseI64ArrayAttr())
        .getValue();
  };
  for (const auto &[label, parameter] : findParameters(module)) {
    // Weight decay applies to matrices but not to gains and biases.
    bool decay = llvm::cast<RankedTensorType>(parameter.type).getRank() >= 2;
    Value gradient = read(label, parameter);
    builder.create<ir::AdamwOp>(parameter.location, label, gradient,
                                decay ? builder.getUnitAttr() : UnitAttr());
  }
  for (const auto &[label, scalar] : *scalars) {
    Value total = read(label, scalar);
    builder.create<ir::ResultOp>(scalar.location, label, total,
                                 DenseI64ArrayAttr());
  }
  return success();
}

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<bool> done = isDifferentiated(module);
    if (failed(done))
      return signalPassFailure();
    if (*done)
      return markAllAnalysesPreserved();
    if (failed(checkEnd(module)) || failed(accumulateLosses(module)))
      return signalPassFailure();
    for (auto segment : module.getOps<ir::SegmentOp>())
      if (failed(buildBackward(segment)))
        return signalPassFailure();
    if (failed(buildUpdate(module)))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes
