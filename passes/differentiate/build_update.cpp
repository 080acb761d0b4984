//===- build_update.cpp - What happens once per step ----------------------===//

#include "passes/differentiate/build_update.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mtplan::passes {
namespace {

struct Accumulator {
  Location location;
  Type type;
};
using Accumulators = llvm::MapVector<StringAttr, Accumulator>;

// Parameters of the forward halves. That a label has one type is verified by
// the parameters themselves.
Accumulators findParameters(ModuleOp module) {
  Accumulators found;
  for (auto segment : module.getOps<ir::SegmentOp>())
    for (auto op : segment.getBlock().getOps<ir::ParameterOp>())
      found.insert({op.getLabelAttr(), {op.getLoc(), op.getValue().getType()}});
  return found;
}

// What the forward halves accumulate: the loss, and whatever else is reported.
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

} // namespace

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
    // Weight decay is for matrices: gains and biases are not to be shrunk.
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

} // namespace mtplan::passes
