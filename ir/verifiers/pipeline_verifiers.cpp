//===- pipeline_verifiers.cpp - Verifiers of messages between stages ------===//
//
// These are the checks that one end of a message can make by itself. A gate
// sees the whole module and checks that every message has both ends, of one
// type and in one order.
//
//===----------------------------------------------------------------------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

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

// Checks, in this order:
// - the segment around it has a chunk, and the mesh an axis "pp";
// - `to` is a coordinate of that axis, and not the segment's own.
LogicalResult SendOp::verify() {
  return verifyEnd(*this, "to", static_cast<int64_t>(getTo()));
}

// Checks, in this order:
// - the segment around it has a chunk, and the mesh an axis "pp";
// - `from` is a coordinate of that axis, and not the segment's own.
LogicalResult ReceiveOp::verify() {
  return verifyEnd(*this, "from", static_cast<int64_t>(getFrom()));
}

} // namespace mtplan::ir
