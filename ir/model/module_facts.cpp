//===- module_facts.cpp - Checks a module of any source -------------------===//

#include "ir/model/module_facts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "llvm/ADT/ScopeExit.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::ir {

namespace {

// Limits the number of elements of one tensor, and of all parameters together.
// Twice the number of bytes of this many elements still fits in an int64.
constexpr std::int64_t kElementLimit = std::int64_t{1} << 58;

void report(Findings &findings, Location location, std::string_view what) {
  std::string where = describeLocation(location);
  if (where.empty() || where.front() == '/')
    findings.error(where, what);
  else
    findings.errors.push_back(where + ": " + std::string(what));
}

std::string labelOf(Operation *op) {
  auto label = op->getAttrOfType<StringAttr>("label");
  return op->getName().getStringRef().str() +
         (label ? " \"" + label.getValue().str() + '"' : std::string());
}

void checkType(Operation *op, Type type, Findings &findings) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return;
  std::int64_t elements = 1;
  for (std::int64_t size : tensor.getShape()) {
    if (ShapedType::isDynamic(size) || size < 1 || size >= kSizeLimit) {
      std::string shown =
          ShapedType::isDynamic(size) ? "unknown" : std::to_string(size);
      report(findings, op->getLoc(),
             labelOf(op) + ": a dimension must be from 1 to " +
                 std::to_string(kSizeLimit - 1) + ", but is " + shown);
      return;
    }
    if (elements >= kElementLimit / size) {
      report(findings, op->getLoc(),
             labelOf(op) + ": a tensor of 2^58 elements or more");
      return;
    }
    elements *= size;
  }
}

void checkSizes(ModuleOp module, Findings &findings) {
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      checkType(op, type, findings);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          checkType(op, type, findings);
  });
}

// Rejects generic IR that lacks the block that all other checks read, or that
// has empty symbol names, which the custom syntax cannot express.
void checkForm(ModuleOp module, Findings &findings) {
  if (module->getNumRegions() != 1 || !module->getRegion(0).hasOneBlock()) {
    report(findings, module.getLoc(), "a module has one region of one block");
    return;
  }
  module.walk([&](Operation *op) {
    auto name = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (name && name.empty())
      report(findings, op->getLoc(), labelOf(op) + ": has an empty name");
  });
}

void checkCopies(ModuleOp module, Findings &findings) {
  std::int64_t copies = 0;
  for (auto segment : module.getOps<SegmentOp>()) {
    auto repeat = static_cast<std::int64_t>(segment.getRepeat());
    auto first = static_cast<std::int64_t>(segment.getFirst());
    if (repeat < 1 || repeat > kMaxLayers || first < 0 || first >= kSizeLimit) {
      report(findings, segment.getLoc(),
             "segment @" + segment.getSymName().str() + ": repeat " +
                 std::to_string(repeat) + " and first " +
                 std::to_string(first) + " must be from 1 to " +
                 std::to_string(kMaxLayers) + " and from 0 to " +
                 std::to_string(kSizeLimit - 1));
      return;
    }
    copies += repeat;
    if (copies > 3 * kMaxLayers) {
      report(findings, module.getLoc(),
             "more than " + std::to_string(3 * kMaxLayers) +
                 " copies of segments in all");
      return;
    }
  }
}

struct Copies {
  std::int64_t elements = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges; // [from, to)
};

std::int64_t countCopies(Copies copies) {
  std::sort(copies.ranges.begin(), copies.ranges.end());
  std::int64_t count = 0, end = -1;
  for (auto [from, to] : copies.ranges) {
    from = std::max(from, end);
    count += std::max<std::int64_t>(0, to - from);
    end = std::max(end, to);
  }
  return count;
}

// Returns the number of elements of all parameters, or nothing if the number is
// kElementLimit or more.
std::optional<std::int64_t> sumParameters(ModuleOp module) {
  std::map<std::string, Copies> byLabel;
  for (auto segment : module.getOps<SegmentOp>())
    segment.walk([&](ParameterOp parameter) {
      Copies &copies = byLabel[parameter.getLabel().str()];
      auto type = llvm::cast<RankedTensorType>(parameter.getValue().getType());
      copies.elements = type.getNumElements();
      std::int64_t first = 0, count = 1;
      if (parameter.getLabel().contains('*')) {
        first = static_cast<std::int64_t>(segment.getFirst());
        count = static_cast<std::int64_t>(segment.getRepeat());
      }
      copies.ranges.emplace_back(first, first + count);
    });
  std::int64_t sum = 0;
  for (const auto &[label, copies] : byLabel) {
    std::int64_t count = countCopies(copies);
    if (copies.elements > (kElementLimit - 1 - sum) / count)
      return std::nullopt;
    sum += copies.elements * count;
  }
  return sum;
}

} // namespace

Type elementTypeOf(MLIRContext &context, llvm::StringRef name) {
  Builder builder(&context);
  if (name == "bf16")
    return builder.getBF16Type();
  if (name == "f16")
    return builder.getF16Type();
  if (name == "f32")
    return builder.getF32Type();
  return {};
}

std::string describeLocation(Location location) {
  if (auto named = llvm::dyn_cast<NameLoc>(location))
    return named.getName().str();
  if (auto place = llvm::dyn_cast<FileLineColLoc>(location))
    if (place.getLine() > 0)
      return place.getFilename().str() + ':' + std::to_string(place.getLine()) +
             ':' + std::to_string(place.getColumn());
  return "";
}

bool checkModule(ModuleOp module, Findings &findings) {
  const std::size_t before = findings.errors.size();
  auto clean = [&] { return findings.errors.size() == before; };

  checkForm(module, findings);
  if (!clean())
    return false;
  // Sizes are checked first, because verifiers multiply sizes.
  checkSizes(module, findings);
  checkCopies(module, findings);
  if (!clean())
    return false;

  // Diagnostics do not print the operator, so that each error is one line.
  MLIRContext *context = module.getContext();
  const bool printsOps = context->shouldPrintOpOnDiagnostic();
  context->printOpOnDiagnostic(false);
  auto restore =
      llvm::make_scope_exit([&] { context->printOpOnDiagnostic(printsOps); });
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    std::string text = diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes()) {
      std::string where = describeLocation(note.getLocation());
      text += "; " + note.str() + (where.empty() ? "" : " (" + where + ')');
    }
    report(findings, diagnostic.getLocation(), text);
    return success();
  });
  // verify() stops at the first bad operator. The walk verifies each operator
  // by itself, so that all bad operators are reported.
  module.walk([](Operation *op) { (void)op->getName().verifyInvariants(op); });
  if (clean() && failed(verify(module)) && clean())
    report(findings, module.getLoc(), "the module does not verify");
  if (!clean())
    return false;
  if (!sumParameters(module))
    report(findings, module.getLoc(), "2^58 parameters or more in all");
  return clean();
}

std::int64_t countParameters(ModuleOp module) {
  return sumParameters(module).value_or(0);
}

} // namespace mtplan::ir
