//===- mtp_dialect.cpp - The dialect and its attributes -------------------===//

#include <limits>

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "ir/mtp.h"
#include "ir/mtp_dialect.cpp.inc"
#include "ir/mtp_enums.cpp.inc"
#include "ir/mtp_interfaces.cpp.inc"
#include "ir/operators/definition.h"

#define GET_ATTRDEF_CLASSES
#include "ir/mtp_attrs.cpp.inc"

#define GET_OP_CLASSES
#include "ir/mtp_ops.cpp.inc"

using namespace mlir;

namespace mtplan::ir {

void MtpDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/mtp_attrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/mtp_ops.cpp.inc"
      >();
}

LogicalResult DropoutOp::verify() { return expectRate(*this, getRate()); }

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  auto entry = [&]() -> ParseResult {
    std::string axis;
    int64_t size = 0;
    if (parser.parseString(&axis) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), axis));
    sizes.push_back(size);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, entry))
    return {};
  return parser.getChecked<MeshAttr>(parser.getContext(), names, sizes);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(
      llvm::zip(getNames(), getSizes()), printer, [&](auto entry) {
        printer << std::get<0>(entry) << " = " << std::get<1>(entry);
      });
  printer << '>';
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names,
                               ArrayRef<int64_t> sizes) {
  llvm::StringSet<> seen;
  int64_t ranks = 1;
  for (auto [axis, size] : llvm::zip_equal(names, sizes)) {
    if (size < 1)
      return emitError() << "axis " << axis << " needs at least 1 rank, got "
                         << size;
    if (size > std::numeric_limits<int32_t>::max() / ranks)
      return emitError() << "has 2^31 ranks or more: " << ranks
                         << " before axis " << axis << ", which has " << size;
    ranks *= size;
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "names axis " << axis << " twice";
  }
  return success();
}

int64_t MeshAttr::sizeOf(StringRef axis) const {
  for (auto [known, size] : llvm::zip_equal(getNames(), getSizes()))
    if (known.getValue() == axis)
      return size;
  return 0;
}

int64_t MeshAttr::ranks() const {
  int64_t product = 1;
  for (int64_t size : getSizes())
    product *= size;
  return product;
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<ArrayAttr> dims;
  SmallVector<StringAttr> partial;
  bool max = false;
  auto dim = [&]() -> ParseResult {
    ArrayAttr axes;
    if (parser.parseAttribute(axes))
      return failure();
    dims.push_back(axes);
    return success();
  };
  auto axis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    partial.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, dim))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("partial") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, axis))
      return {};
    if (succeeded(parser.parseOptionalComma())) {
      if (parser.parseKeyword("max"))
        return {};
      max = true;
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(parser.getContext(), dims, partial, max);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer);
  printer << ']';
  if (!getPartial().empty()) {
    printer << ", partial = [";
    llvm::interleaveComma(getPartial(), printer);
    printer << ']';
    if (getMax())
      printer << ", max";
  }
  printer << '>';
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<ArrayAttr> dims,
                                 ArrayRef<StringAttr> partial, bool max) {
  llvm::StringSet<> seen;
  for (ArrayAttr dim : dims)
    for (Attribute entry : dim) {
      auto axis = llvm::dyn_cast<StringAttr>(entry);
      if (!axis)
        return emitError() << "needs axis names, got " << entry;
      if (!seen.insert(axis.getValue()).second)
        return emitError() << "names axis " << axis << " twice";
    }
  for (StringAttr axis : partial)
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "names axis " << axis << " twice";
  if (max && partial.empty())
    return emitError() << "is a maximum over no axis";
  return success();
}

Attribute StrategyAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> axes, factors;
  auto entry = [&]() -> ParseResult {
    std::string axis, factor;
    if (parser.parseString(&axis) || parser.parseEqual() ||
        parser.parseString(&factor))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), axis));
    factors.push_back(StringAttr::get(parser.getContext(), factor));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, entry))
    return {};
  return parser.getChecked<StrategyAttr>(parser.getContext(), axes, factors);
}

void StrategyAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(
      llvm::zip(getAxes(), getFactors()), printer, [&](auto entry) {
        printer << std::get<0>(entry) << " = " << std::get<1>(entry);
      });
  printer << '>';
}

LogicalResult StrategyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<StringAttr> axes,
                                   ArrayRef<StringAttr> factors) {
  if (axes.size() != factors.size())
    return emitError() << "names " << axes.size() << " axes but "
                       << factors.size() << " factors";
  llvm::StringSet<> seen;
  for (StringAttr axis : axes)
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "names axis " << axis << " twice";
  return success();
}

StringRef StrategyAttr::factorOf(StringRef axis) const {
  for (auto [known, factor] : llvm::zip_equal(getAxes(), getFactors()))
    if (known.getValue() == axis)
      return factor.getValue();
  return {};
}

// TableGen chooses the parameter names of the declaration.
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
LogicalResult PlaceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef, int64_t offset, int64_t size,
                                int64_t entries, int64_t entryStride,
                                int64_t slots, int64_t slotStride, int64_t,
                                int64_t, Type) {
  if (size < 1 || entries < 1 || slots < 1)
    return emitError() << "needs at least one byte, entry and slot, got "
                       << size << ", " << entries << " and " << slots;
  if (offset < 0 || entryStride < 0 || slotStride < 0)
    return emitError() << "has a negative offset or stride: " << offset << ", "
                       << entryStride << ", " << slotStride;
  if (entries > 1 && entryStride < size)
    return emitError() << "has entries of " << size << " bytes every "
                       << entryStride;
  if (slots > 1 && slotStride < (entries - 1) * entryStride + size)
    return emitError() << "has slots of " << (entries - 1) * entryStride + size
                       << " bytes every " << slotStride;
  return success();
}

} // namespace mtplan::ir
