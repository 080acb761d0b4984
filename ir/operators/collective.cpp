//===- collective.cpp - Verifiers of communication ------------------------===//

#include "llvm/Support/MathExtras.h"

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

static LogicalResult checkAxes(ReshardOp op, LayoutAttr layout) {
  MeshAttr mesh = meshOf(op);
  if (!mesh)
    return success();
  auto check = [&](StringAttr axis) -> LogicalResult {
    if (mesh.sizeOf(axis.getValue()) == 0)
      return op.emitOpError("the mesh has no axis ") << axis;
    return success();
  };
  for (ArrayAttr dim : layout.getDims())
    for (StringAttr axis : dim.getAsRange<StringAttr>())
      if (failed(check(axis)))
        return failure();
  for (StringAttr axis : layout.getPartial())
    if (failed(check(axis)))
      return failure();
  return success();
}

LogicalResult ReshardOp::verify() {
  int64_t rank = tensorOf(getInput()).getRank();
  for (auto [name, layout] :
       {std::pair<StringRef, LayoutAttr>("source", getSource()),
        std::pair<StringRef, LayoutAttr>("target", getTarget())}) {
    auto entries = static_cast<int64_t>(layout.getDims().size());
    if (entries != rank)
      return emitOpError() << name << " has " << entries
                           << " entries, needs one for each of " << rank
                           << " dimensions";
  }
  if (getSource() == getTarget())
    return emitOpError("needs two layouts that differ, got ")
           << getSource() << " twice";
  return failure(failed(checkAxes(*this, getSource())) ||
                 failed(checkAxes(*this, getTarget())));
}

// Returns the number of ranks along `axis`, or fails if the mesh has no such
// axis.
static FailureOr<int64_t> groupSize(Operation *op, StringRef axis) {
  MeshAttr mesh = meshOf(op);
  if (!mesh)
    return op->emitOpError("needs a mesh, but the module has no ")
           << kMeshAttrName;
  int64_t ranks = mesh.sizeOf(axis);
  if (ranks == 0)
    return op->emitOpError("the mesh has no axis \"") << axis << "\"";
  return ranks;
}

static LogicalResult checkDim(Operation *op, StringRef name, uint64_t dim,
                              Value value) {
  auto signedDim = static_cast<int64_t>(dim);
  int64_t rank = tensorOf(value).getRank();
  if (signedDim < 0 || signedDim >= rank)
    return op->emitOpError()
           << name << " " << signedDim << " is none of the tensor's " << rank
           << " dimensions";
  return success();
}

static LogicalResult lengthen(Operation *op, int64_t &size, int64_t ranks) {
  if (llvm::MulOverflow(size, ranks, size))
    return op->emitOpError("needs a dimension longer than any tensor's over ")
           << ranks << " ranks";
  return success();
}

// Checks that `whole` has the type of `piece`, with `dim` multiplied by the
// number of ranks of `axis`.
static LogicalResult checkPieces(Operation *op, StringRef axis, uint64_t dim,
                                 Value piece, StringRef wholeName,
                                 Value whole) {
  FailureOr<int64_t> ranks = groupSize(op, axis);
  if (failed(ranks) || failed(checkDim(op, "dim", dim, piece)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(piece));
  return failure(
      failed(lengthen(op, shape[dim], *ranks)) ||
      failed(expectType(op, wholeName, whole, tensorOf(piece).clone(shape))));
}

LogicalResult AllReduceOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxis());
  if (failed(ranks) || !getAmong())
    return ranks;
  ArrayRef<int64_t> among = *getAmong();
  if (among.size() < 2)
    return emitOpError("needs at least 2 coordinates to be among, got ")
           << among.size();
  for (auto [i, coordinate] : llvm::enumerate(among)) {
    if (coordinate < 0 || coordinate >= *ranks)
      return emitOpError("is among coordinate ")
             << coordinate << " of axis \"" << getAxis() << "\", which has "
             << *ranks;
    if (i > 0 && coordinate <= among[i - 1])
      return emitOpError("needs ascending coordinates to be among, got ")
             << among[i - 1] << " before " << coordinate;
  }
  return success();
}

LogicalResult MaskOp::verify() { return groupSize(*this, getAxis()); }

LogicalResult AllGatherOp::verify() {
  return checkPieces(*this, getAxis(), getDim(), getInput(), "result",
                     getResult());
}

LogicalResult ReduceScatterOp::verify() {
  return checkPieces(*this, getAxis(), getDim(), getResult(), "operand",
                     getInput());
}

LogicalResult SliceOp::verify() {
  return checkPieces(*this, getAxis(), getDim(), getResult(), "operand",
                     getInput());
}

LogicalResult AllToAllOp::verify() {
  FailureOr<int64_t> ranks = groupSize(*this, getAxis());
  if (failed(ranks) ||
      failed(checkDim(*this, "split", getSplit(), getInput())) ||
      failed(checkDim(*this, "join", getJoin(), getInput())))
    return failure();
  if (getSplit() == getJoin())
    return emitOpError("splits and joins one dimension, ")
           << getSplit() << ", needs two";
  SmallVector<int64_t> shape(shapeOf(getInput()));
  if (shape[getSplit()] % *ranks != 0)
    return emitOpError("dimension ")
           << getSplit() << " of " << shape[getSplit()]
           << " cannot be split over " << *ranks << " ranks";
  shape[getSplit()] /= *ranks;
  return failure(failed(lengthen(*this, shape[getJoin()], *ranks)) ||
                 failed(expectType(*this, "result", getResult(),
                                   tensorOf(getInput()).clone(shape))));
}

//===----------------------------------------------------------------------===//
// Messages between stages
//
// These verifiers see one end of a message. mtp-verify-stages checks in the
// whole module that every message has both ends, of one type and in one order.
//===----------------------------------------------------------------------===//

static LogicalResult verifyEnd(Operation *op, StringRef name, int64_t peer) {
  auto segment = op->getParentOfType<SegmentOp>();
  if (!segment || !segment.getChunk())
    return op->emitOpError("needs a segment with a chunk around it");
  if (failed(expectStage(op, name, peer)))
    return failure();
  if (segment.getStage() != peer)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError()
                                  << name << " " << peer
                                  << " is the stage of its own segment";
  diagnostic.attachNote(segment.getLoc())
      << "which is chunk " << *segment.getChunk();
  return diagnostic;
}

LogicalResult SendOp::verify() {
  return verifyEnd(*this, "to", static_cast<int64_t>(getTo()));
}

LogicalResult ReceiveOp::verify() {
  return verifyEnd(*this, "from", static_cast<int64_t>(getFrom()));
}

} // namespace mtplan::ir
