//===- structure_verifiers.cpp - Verifiers of segments and their halves ---===//
//
// A segment is verified before the operations in it, which may still be
// malformed. Its checks therefore look attributes up by name and allow for
// missing terminators.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Returns the yield that ends `block`, or null.
static YieldOp yieldOf(Block &block) {
  return block.empty() ? YieldOp() : llvm::dyn_cast<YieldOp>(block.back());
}

// Returns the block of another operation, or null, since generic IR can leave
// it out.
static Block *blockOf(Operation *op) {
  return op->getNumRegions() == 1 && op->getRegion(0).hasOneBlock()
             ? &op->getRegion(0).front()
             : nullptr;
}

// Returns the nearest segment before or after `op`, or null.
static SegmentOp neighbour(Operation *op, bool before) {
  auto step = [&] { return before ? op->getPrevNode() : op->getNextNode(); };
  while ((op = step()))
    if (auto segment = llvm::dyn_cast<SegmentOp>(op))
      return segment;
  return {};
}

// Checks one type after the other. `what` and `from` name the owners in
// messages.
static LogicalResult expectTypes(Operation *op, StringRef what, TypeRange found,
                                 StringRef from, TypeRange needed,
                                 Location other) {
  auto fail = [&](const Twine &message) {
    InFlightDiagnostic diagnostic = op->emitOpError(message);
    diagnostic.attachNote(other) << from << " are here";
    return diagnostic;
  };
  if (found.size() != needed.size())
    return fail("has " + Twine(found.size()) + " " + what + ", " + from +
                " are " + Twine(needed.size()));
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != needed[i])
      return fail(what + Twine(" have another type than ") + from)
             << ": number " << i << " is " << found[i] << ", needs "
             << needed[i];
  return success();
}

//===----------------------------------------------------------------------===//
// Segment
//===----------------------------------------------------------------------===//

static LogicalResult checkCopies(SegmentOp op, YieldOp yield) {
  auto repeat = static_cast<int64_t>(op.getRepeat());
  auto first = static_cast<int64_t>(op.getFirst());
  if (repeat < 1)
    return op.emitOpError("needs to repeat at least 1 time, got ") << repeat;
  if (first < 0)
    return op.emitOpError("needs a first copy of at least 0, got ") << first;
  if (auto chunk = op.getChunkAttr(); chunk && chunk.getInt() < 0)
    return op.emitOpError("needs a chunk of at least 0, got ")
           << chunk.getInt();
  if (repeat == 1)
    return success();
  return expectTypes(op, "yielded values", yield.getValues().getTypes(),
                     "the arguments of the next copy",
                     op.getBlock().getArgumentTypes(), op.getLoc());
}

static LogicalResult checkChain(SegmentOp op) {
  TypeRange arguments = op.getBlock().getArgumentTypes();
  SegmentOp previous = neighbour(op, /*before=*/true);
  if (!previous) {
    if (!arguments.empty())
      return op.emitOpError("is the first segment but has ")
             << arguments.size() << " arguments, needs 0";
    return success();
  }
  Block *block = blockOf(previous);
  YieldOp yield = block ? yieldOf(*block) : YieldOp();
  if (!yield)
    return success(); // The previous segment reports it.
  return expectTypes(op, "arguments", arguments,
                     "the values of the previous segment",
                     yield.getValues().getTypes(), yield.getLoc());
}

static LogicalResult checkBackward(SegmentOp op, YieldOp yield) {
  for (BackwardOp backward : op.getBlock().getOps<BackwardOp>())
    if (backward->getNextNode() != yield) {
      InFlightDiagnostic diagnostic =
          op.emitOpError("needs at most one mtp.backward, right before the "
                         "mtp.yield");
      diagnostic.attachNote(backward.getLoc()) << "but there is one here";
      return diagnostic;
    }
  return success();
}

// Checks the labels of both halves. A gate, which sees all segments, compares
// labels of different ones.
static LogicalResult checkLabels(SegmentOp op) {
  llvm::MapVector<StringAttr, Operation *> seen;
  WalkResult result = op.getBody().walk([&](ComputeOp operation) {
    auto label = operation->getAttrOfType<StringAttr>("label");
    if (!label)
      return WalkResult::advance(); // The operator reports it.
    auto [entry, isNew] = seen.insert({label, operation});
    if (isNew)
      return WalkResult::advance();
    InFlightDiagnostic diagnostic = operation->emitOpError("has the label ")
                                    << label
                                    << ", which is taken in its segment";
    diagnostic.attachNote(entry->second->getLoc()) << "by this operator";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

// Checks, in this order:
// - `repeat` is at least 1, `first` and `chunk` at least 0;
// - a segment that repeats yields the types of its arguments;
// - the arguments are what the previous segment of the module yields;
// - at most one `mtp.backward`, right before the `mtp.yield`;
// - operator labels are unique, as far as this segment goes.
LogicalResult SegmentOp::verify() {
  YieldOp yield = yieldOf(getBlock());
  if (!yield)
    return emitOpError("needs to end in mtp.yield");
  if (failed(checkCopies(*this, yield)) || failed(checkChain(*this)) ||
      failed(checkBackward(*this, yield)))
    return failure();
  return checkLabels(*this);
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

// Checks the chain of backward halves in a partitioned module. A gradient may
// be split in another way than its value, so these halves are a chain of their
// own.
static LogicalResult checkBackwardChain(BackwardOp op, SegmentOp segment,
                                        YieldOp yield) {
  TypeRange arguments = op.getBlock().getArgumentTypes();
  if (segment.getRepeat() > 1 &&
      failed(expectTypes(op, "yielded gradients", yield.getValues().getTypes(),
                         "the arguments of the copy before", arguments,
                         op.getLoc())))
    return failure();
  SegmentOp next = neighbour(segment, /*before=*/false);
  Block *block = next ? blockOf(next) : nullptr;
  if (!block)
    return success(); // It is the last one, or the other one reports it.
  for (BackwardOp other : block->getOps<BackwardOp>()) {
    Block *half = blockOf(other);
    if (YieldOp handed = half ? yieldOf(*half) : YieldOp())
      return expectTypes(op, "arguments", arguments,
                         "the gradients of the next segment's arguments",
                         handed.getValues().getTypes(), handed.getLoc());
  }
  return success();
}

// Checks, in this order:
// - the arguments have the types the segment yields;
// - it yields the types of the segment's arguments.
// In a partitioned module, where layouts differ, the chain is checked instead.
LogicalResult BackwardOp::verify() {
  auto segment = llvm::cast<SegmentOp>((*this)->getParentOp());
  YieldOp forward = yieldOf(*(*this)->getBlock()), yield = yieldOf(getBlock());
  if (!yield)
    return emitOpError("needs to end in mtp.yield");
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (module && module->hasAttr(kPartitionedAttrName))
    return checkBackwardChain(*this, segment, yield);
  if (forward &&
      failed(expectTypes(*this, "arguments", getBlock().getArgumentTypes(),
                         "the segment's yielded values",
                         forward.getValues().getTypes(), forward.getLoc())))
    return failure();
  return expectTypes(*this, "yielded gradients", yield.getValues().getTypes(),
                     "the segment's arguments",
                     segment.getBlock().getArgumentTypes(), segment.getLoc());
}

//===----------------------------------------------------------------------===//
// Update, parameters, inputs
//===----------------------------------------------------------------------===//

// Checks, in this order:
// - a module has at most one, or one per stage;
// - the stage, if there is one, is a coordinate of the mesh's axis "pp".
LogicalResult UpdateOp::verify() {
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode()) {
    auto other = llvm::dyn_cast<UpdateOp>(op);
    if (!other || (getStage() && other.getStage() &&
                   getStageAttr() != other.getStageAttr()))
      continue;
    InFlightDiagnostic diagnostic =
        emitOpError("is the second of its ")
        << (getStage() && other.getStage() ? "stage" : "module")
        << ", which may have 1";
    diagnostic.attachNote(op->getLoc()) << "the first is here";
    return diagnostic;
  }
  return getStage() ? expectStage(*this, "on", getStageAttr().getInt())
                    : success();
}

// Checks, in this order:
// - the result, if there is one, has the gradient's type;
// - with a `layout` there is a result.
LogicalResult AdamwOp::verify() {
  if (getUpdated() && getUpdated().getType() != getGradient().getType())
    return emitOpError("makes ")
           << getUpdated().getType() << " from a gradient "
           << getGradient().getType();
  if (getLayout() && !getUpdated())
    return emitOpError("updates in place, but has a layout of its own");
  return success();
}

// - `unpadded` has an entry for each dimension, at least 1 and no more than its
//   extent (in a partitioned module: over the axes that split it).
static LogicalResult verifyUnpadded(ParameterOp op) {
  std::optional<ArrayRef<int64_t>> unpadded = op.getUnpadded();
  if (!unpadded)
    return success();
  ArrayRef<int64_t> shape = tensorOf(op.getValue()).getShape();
  if (unpadded->size() != shape.size())
    return op.emitOpError("has ")
           << unpadded->size() << " entries of unpadded, needs one for each of "
           << shape.size() << " dimensions";
  auto module = op->getParentOfType<ModuleOp>();
  bool local = module && module->hasAttr(kPartitionedAttrName);
  auto mesh =
      local ? module->getAttrOfType<MeshAttr>(kMeshAttrName) : MeshAttr();
  for (auto [d, size] : llvm::enumerate(*unpadded)) {
    auto whole = static_cast<uint64_t>(shape[d]);
    if (std::optional<LayoutAttr> layout = op.getLayout();
        mesh && layout && d < layout->getDims().size())
      for (auto axis : layout->getDims()[d].getAsRange<StringAttr>())
        whole = llvm::SaturatingMultiply(
            whole, static_cast<uint64_t>(
                       std::max<int64_t>(mesh.sizeOf(axis.getValue()), 1)));
    if (size < 1 || static_cast<uint64_t>(size) > whole)
      return op.emitOpError("dimension ")
             << d << " has an extent of " << whole << ", but " << size
             << " without padding";
  }
  return success();
}

// Checks, in this order:
// - `init` is one of normal, residual, ones, zeros;
// - `unpadded` fits the type;
// - `unpadded` is the same wherever the label appears;
// - the type is the same wherever the label appears (in a partitioned module:
//   unless it has a `*`, as copies may be stored differently).
LogicalResult ParameterOp::verify() {
  StringRef init = getInit();
  if (init != "normal" && init != "residual" && init != "ones" &&
      init != "zeros")
    return emitOpError("needs init normal, residual, ones or zeros, got \"")
           << init << "\"";
  if (failed(verifyUnpadded(*this)))
    return failure();
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (!module)
    return success();
  // Comparing with the first one suffices, because every other one does so too.
  ParameterOp first = *this;
  module->walk([&](ParameterOp other) {
    if (other->getAttr("label") != getLabelAttr() ||
        other->getNumResults() != 1)
      return WalkResult::advance();
    first = other;
    return WalkResult::interrupt();
  });
  if (first.getUnpaddedAttr() != getUnpaddedAttr()) {
    InFlightDiagnostic diagnostic = emitOpError("parameter ")
                                    << getLabelAttr()
                                    << " has another unpadded than elsewhere";
    diagnostic.attachNote(first.getLoc()) << "it is first read here";
    return diagnostic;
  }
  if (first.getValue().getType() == getValue().getType() ||
      (module->hasAttr(kPartitionedAttrName) && getLabel().contains('*')))
    return success();
  InFlightDiagnostic diagnostic = emitOpError("parameter ")
                                  << getLabelAttr() << " has type "
                                  << getValue().getType() << ", but elsewhere "
                                  << first.getValue().getType();
  diagnostic.attachNote(first.getLoc()) << "it is first read here";
  return diagnostic;
}

// Checks:
// - one entry of `dims` per dimension, each batch, sequence or other.
LogicalResult InputOp::verify() {
  int64_t rank = tensorOf(getValue()).getRank();
  if (static_cast<int64_t>(getDims().size()) != rank)
    return emitOpError("has ") << getDims().size() << " entries of dims, needs "
                               << "one for each of " << rank << " dimensions";
  for (auto dim : getDims().getAsRange<StringAttr>()) {
    StringRef name = dim.getValue();
    if (name != "batch" && name != "sequence" && name != "other")
      return emitOpError("needs dims of batch, sequence or other, got ") << dim;
  }
  return success();
}

} // namespace mtplan::ir
