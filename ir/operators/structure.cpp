//===- structure.cpp - Segments, parameters, data, updates ----------------===//

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Builders.h"

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

// Parses (%arg : type, ...) attr-dict? region.
static ParseResult parseArgumentsAndBody(OpAsmParser &parser,
                                         OperationState &state) {
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*state.addRegion(), arguments))
    return failure();
  if (state.regions.front()->empty())
    return parser.emitError(parser.getCurrentLocation(), "needs a body");
  return success();
}

static void printArgumentsAndBody(OpAsmPrinter &printer, Operation *op,
                                  ArrayRef<StringRef> elided) {
  Block &block = op->getRegion(0).front();
  printer << " (";
  llvm::interleaveComma(block.getArguments(), printer, [&](auto argument) {
    printer.printRegionArgument(argument);
  });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), elided);
  printer << ' ';
  printer.printRegion(op->getRegion(0), /*printEntryBlockArgs=*/false);
}

// Parses @name (repeat N)? (first M)? (chunk K)? (args) body.
ParseResult SegmentOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes))
    return failure();
  Type i64 = parser.getBuilder().getI64Type();
  for (StringRef keyword : {"repeat", "first", "chunk"}) {
    if (failed(parser.parseOptionalKeyword(keyword)))
      continue;
    IntegerAttr count;
    if (parser.parseAttribute(count, i64, keyword, result.attributes))
      return failure();
  }
  return parseArgumentsAndBody(parser, result);
}

void SegmentOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  if (getRepeat() != 1)
    printer << " repeat " << getRepeat();
  if (getFirst() != 0)
    printer << " first " << getFirst();
  if (std::optional<uint64_t> chunk = getChunk())
    printer << " chunk " << *chunk;
  printArgumentsAndBody(printer, *this,
                        {"sym_name", "repeat", "first", "chunk"});
}

BackwardOp SegmentOp::getBackward() {
  for (Operation &op : llvm::reverse(getBlock()))
    if (auto backward = llvm::dyn_cast<BackwardOp>(op))
      return backward;
  return {};
}

std::optional<std::int64_t> SegmentOp::getStage() {
  MeshAttr mesh = meshOf(*this);
  std::int64_t stages = mesh ? mesh.sizeOf(kStageAxis) : 0;
  if (!getChunk() || stages == 0)
    return std::nullopt;
  return static_cast<std::int64_t>(*getChunk()) % stages;
}

YieldOp SegmentOp::getYield() {
  return llvm::cast<YieldOp>(getBlock().getTerminator());
}

ParseResult BackwardOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseArgumentsAndBody(parser, result);
}

void BackwardOp::print(OpAsmPrinter &printer) {
  printArgumentsAndBody(printer, *this, {});
}

YieldOp BackwardOp::getYield() {
  return llvm::cast<YieldOp>(getBlock().getTerminator());
}

//===----------------------------------------------------------------------===//
// Verifiers of the constraints in ir/structure_ops.td
//
// A segment is verified before the operations in it, which may be malformed.
// The checks of a segment therefore look up attributes by name and allow for
// missing terminators.
//===----------------------------------------------------------------------===//

static YieldOp yieldOf(Block &block) {
  return block.empty() ? YieldOp() : llvm::dyn_cast<YieldOp>(block.back());
}

// Returns the single block of `op`, or null if `op` has none or several, which
// generic IR allows.
static Block *blockOf(Operation *op) {
  return op->getNumRegions() == 1 && op->getRegion(0).hasOneBlock()
             ? &op->getRegion(0).front()
             : nullptr;
}

static SegmentOp neighbour(Operation *op, bool before) {
  auto step = [&] { return before ? op->getPrevNode() : op->getNextNode(); };
  while ((op = step()))
    if (auto segment = llvm::dyn_cast<SegmentOp>(op))
      return segment;
  return {};
}

// Checks that the types `found` equal `needed`. In messages, `what` names the
// values with the types `found`, and `from` names the values with the types
// `needed`.
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

static LogicalResult checkCopies(SegmentOp op, YieldOp yield) {
  auto repeat = static_cast<int64_t>(op.getRepeat());
  auto first = static_cast<int64_t>(op.getFirst());
  if (repeat < 1)
    return op.emitOpError("needs to repeat at least 1 time, got ") << repeat;
  if (first < 0)
    return op.emitOpError("needs a first layer of at least 0, got ") << first;
  if (auto chunk = op.getChunkAttr(); chunk && chunk.getInt() < 0)
    return op.emitOpError("needs a chunk of at least 0, got ")
           << chunk.getInt();
  if (repeat == 1)
    return success();
  return expectTypes(op, "yielded values", yield.getValues().getTypes(),
                     "the arguments of the next layer",
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
    return success(); // The verifier of the previous segment fails.
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

static LogicalResult checkLabels(SegmentOp op) {
  llvm::MapVector<StringAttr, Operation *> seen;
  WalkResult result = op.getBody().walk([&](ComputeOp operation) {
    auto label = operation->getAttrOfType<StringAttr>("label");
    if (!label)
      return WalkResult::advance(); // The verifier of the operator fails.
    auto [entry, isNew] = seen.insert({label, operation});
    if (isNew)
      return WalkResult::advance();
    InFlightDiagnostic diagnostic = operation->emitOpError("has the label ")
                                    << label
                                    << ", which another operator of the "
                                       "segment already has";
    diagnostic.attachNote(entry->second->getLoc())
        << "the other operator is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult SegmentOp::verify() {
  YieldOp yield = yieldOf(getBlock());
  if (!yield)
    return emitOpError("needs to end in mtp.yield");
  return failure(
      failed(checkCopies(*this, yield)) || failed(checkChain(*this)) ||
      failed(checkBackward(*this, yield)) || failed(checkLabels(*this)));
}

// Checks the types between neighbouring backward halves of a partitioned
// module. The layout, and therefore the type, of a gradient may differ from
// that of its value in the forward half.
static LogicalResult checkBackwardChain(BackwardOp op, SegmentOp segment,
                                        YieldOp yield) {
  TypeRange arguments = op.getBlock().getArgumentTypes();
  if (segment.getRepeat() > 1 &&
      failed(expectTypes(op, "yielded gradients", yield.getValues().getTypes(),
                         "the arguments of the layer before", arguments,
                         op.getLoc())))
    return failure();
  SegmentOp next = neighbour(segment, /*before=*/false);
  Block *block = next ? blockOf(next) : nullptr;
  if (!block)
    return success(); // There is no next segment, or its verifier fails.
  for (BackwardOp other : block->getOps<BackwardOp>()) {
    Block *half = blockOf(other);
    if (YieldOp yielded = half ? yieldOf(*half) : YieldOp())
      return expectTypes(op, "arguments", arguments,
                         "the gradients of the next segment's arguments",
                         yielded.getValues().getTypes(), yielded.getLoc());
  }
  return success();
}

// Checks that the types match those of the forward half or, in a partitioned
// module, the types of the next backward half.
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

MeshAttr meshOf(Operation *op) {
  auto module = llvm::dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<MeshAttr>(kMeshAttrName) : MeshAttr();
}

AdamwOp updatedBy(Operation *op) {
  while (op && !llvm::isa<AdamwOp>(op))
    op = op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return llvm::cast_or_null<AdamwOp>(op);
}

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

LogicalResult AdamwOp::verify() {
  if (getUpdated() && getUpdated().getType() != getGradient().getType())
    return emitOpError("makes ")
           << getUpdated().getType() << " from a gradient "
           << getGradient().getType();
  if (getLayout() && !getUpdated())
    return emitOpError("updates in place, but has a layout of its own");
  return success();
}

static LogicalResult verifyUnpadded(ParameterOp op) {
  std::optional<ArrayRef<int64_t>> unpadded = op.getUnpadded();
  if (!unpadded)
    return success();
  ArrayRef<int64_t> shape = shapeOf(op.getValue());
  if (unpadded->size() != shape.size())
    return op.emitOpError("has ")
           << unpadded->size() << " entries of unpadded, needs one for each of "
           << shape.size() << " dimensions";
  auto module = op->getParentOfType<ModuleOp>();
  bool local = module && module->hasAttr(kPartitionedAttrName);
  MeshAttr mesh = local ? meshOf(op) : MeshAttr();
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
  // A comparison with the first use of the label suffices, because every other
  // use is compared with it, too.
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
