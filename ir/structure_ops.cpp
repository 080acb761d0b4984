//===- structure_ops.cpp - Syntax of segments and their halves ------------===//

#include "mlir/IR/Builders.h"

#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::ir {

// ( `(` %arg : type, ... `)` )? attr-dict? region
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

//===----------------------------------------------------------------------===//
// Segment: @name (repeat N)? (first M)? (chunk K)? (args) body
//===----------------------------------------------------------------------===//

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
  auto module = (*this)->getParentOfType<ModuleOp>();
  auto mesh =
      module ? module->getAttrOfType<MeshAttr>(kMeshAttrName) : MeshAttr();
  std::int64_t stages = mesh ? mesh.sizeOf(kStageAxis) : 0;
  if (!getChunk() || stages == 0)
    return std::nullopt;
  return static_cast<std::int64_t>(*getChunk()) % stages;
}

YieldOp SegmentOp::getYield() {
  return llvm::cast<YieldOp>(getBlock().getTerminator());
}

//===----------------------------------------------------------------------===//
// Backward: (args) body
//===----------------------------------------------------------------------===//

ParseResult BackwardOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseArgumentsAndBody(parser, result);
}

void BackwardOp::print(OpAsmPrinter &printer) {
  printArgumentsAndBody(printer, *this, {});
}

YieldOp BackwardOp::getYield() {
  return llvm::cast<YieldOp>(getBlock().getTerminator());
}

} // namespace mtplan::ir
