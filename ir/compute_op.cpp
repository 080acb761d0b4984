//===- compute_op.cpp - Factors, cost classes and gradients ---------------===//

#include "ir/compute_op.h"

#include "llvm/ADT/SmallPtrSet.h"

#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::ir {

bool GradientBuilder::wants(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && llvm::isa<FloatType>(type.getElementType()) &&
         !value.getDefiningOp<InputOp>();
}

void GradientBuilder::add(Value value, Value gradient, StringRef label) {
  if (!wants(value))
    return;
  Value &total = gradients[value];
  if (!total) {
    total = gradient;
    return;
  }
  // Labels must be unique, but an operator that reads a value twice (x * x)
  // adds two terms under one label.
  unsigned count = ++sums[label];
  std::string name = label.str() + ".sum";
  if (count > 1)
    name += std::to_string(count);
  total = builder.create<AddOp>(gradient.getLoc(), name, total, gradient);
}

std::int64_t bytesOfUses(Operation *op) {
  llvm::SmallPtrSet<void *, 8> seen;
  std::int64_t bytes = 0;
  auto count = [&](Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (type && seen.insert(value.getAsOpaquePointer()).second)
      bytes +=
          type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  };
  llvm::for_each(op->getOperands(), count);
  llvm::for_each(op->getResults(), count);
  return bytes;
}

} // namespace mtplan::ir
