//===- definition.cpp - Helpers for the definitions of operators ----------===//

#include "ir/operators/definition.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace mtplan::ir {

LogicalResult rejectGradient(Operation *op, const GradientBuilder &gradients,
                             StringRef reason) {
  for (OpResult result : op->getResults())
    if (gradients.gradientOf(result))
      return op->emitOpError("gets a gradient for result ")
             << result.getResultNumber() << ", but " << reason;
  return success();
}

LogicalResult checkLossReaders(Operation *loss, Value result) {
  for (Operation *reader : result.getUsers())
    if (!llvm::isa<AccumulateOp>(reader)) {
      InFlightDiagnostic diagnostic = loss->emitOpError(
          "may only be accumulated: its gradient is taken to be 1");
      diagnostic.attachNote(reader->getLoc()) << "but it is also read here";
      return diagnostic;
    }
  return success();
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  stream << ']';
  return stream.str();
}

LogicalResult expectRank(Operation *op, StringRef name, Value value,
                         int64_t rank) {
  int64_t found = tensorOf(value).getRank();
  if (found != rank)
    return op->emitOpError()
           << name << " has " << found << " dimensions, needs " << rank;
  return success();
}

LogicalResult expectAtLeastOneDim(Operation *op, StringRef name, Value value) {
  if (tensorOf(value).getRank() == 0)
    return op->emitOpError() << name << " has 0 dimensions, needs at least 1";
  return success();
}

LogicalResult expectShape(Operation *op, StringRef name, Value value,
                          ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> found = shapeOf(value);
  if (found != shape)
    return op->emitOpError() << name << " has shape " << shapeText(found)
                             << ", needs " << shapeText(shape);
  return success();
}

LogicalResult expectType(Operation *op, StringRef name, Value value,
                         Type type) {
  if (value.getType() != type)
    return op->emitOpError()
           << name << " has type " << value.getType() << ", needs " << type;
  return success();
}

LogicalResult expectVectorOf(Operation *op, StringRef name, Value value,
                             Value rows) {
  return expectShape(op, name, value, shapeOf(rows).take_back());
}

LogicalResult expectHeads(Operation *op, StringRef name, int64_t width,
                          int64_t headDim) {
  if (headDim < 1)
    return op->emitOpError("needs a head_dim of at least 1, got ") << headDim;
  if (width % headDim != 0)
    return op->emitOpError()
           << name << " has " << width
           << " features, needs a multiple of head_dim, " << headDim;
  return success();
}

LogicalResult expectIntegers(Operation *op, StringRef name, Value value) {
  Type element = tensorOf(value).getElementType();
  if (!element.isInteger())
    return op->emitOpError()
           << name << " needs integers, got elements of " << element;
  return success();
}

LogicalResult expectStage(Operation *op, StringRef name, int64_t stage) {
  MeshAttr mesh = meshOf(op);
  int64_t stages = mesh ? mesh.sizeOf(kStageAxis) : 0;
  if (stages == 0)
    return op->emitOpError("needs a mesh with an axis \"")
           << kStageAxis << "\", which the module does not have";
  if (stage < 0 || stage >= stages)
    return op->emitOpError()
           << name << " " << stage << " is none of the " << stages << " stages";
  return success();
}

LogicalResult expectRate(Operation *op, const llvm::APFloat &rate) {
  double value = rate.convertToDouble();
  if (!(value >= 0.0 && value < 1.0))
    return op->emitOpError("needs a rate of at least 0 and below 1, got ")
           << value;
  return success();
}

} // namespace mtplan::ir
