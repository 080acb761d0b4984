//===- element_type.cpp - Changes the precision of a step -----------------===//

#include "passes/memory/element_type.h"

using namespace mlir;

namespace mtplan::passes {

void setElementType(ModuleOp module, FloatType type) {
  auto change = [&](Value value) {
    auto tensor = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (tensor && llvm::isa<FloatType>(tensor.getElementType()))
      value.setType(RankedTensorType::get(tensor.getShape(), type));
  };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), change);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), change);
  });
}

} // namespace mtplan::passes
