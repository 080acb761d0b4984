//===- even_products.cpp - What products may share a launch by ------------===//

#include "passes/memory/even_products.h"

#include "ir/decisions.h"

using namespace mlir;

namespace mtplan::passes {

static bool areAlike(ir::EinsumOp one, ir::EinsumOp other) {
  return one.getLhs() == other.getLhs() &&
         one.getEquation() == other.getEquation() &&
         one->getOperandTypes() == other->getOperandTypes() &&
         one->getResultTypes() == other->getResultTypes();
}

std::vector<SmallVector<Value>> inRows(Block &block) {
  std::vector<SmallVector<ir::EinsumOp>> groups;
  for (auto product : block.getOps<ir::EinsumOp>()) {
    auto found = llvm::find_if(groups, [&](const auto &group) {
      return areAlike(group.front(), product);
    });
    if (found == groups.end())
      groups.push_back({product});
    else
      found->push_back(product);
  }
  std::vector<SmallVector<Value>> rows;
  for (const SmallVector<ir::EinsumOp> &group : groups) {
    if (group.size() < 2)
      continue;
    SmallVector<Value> operands, results;
    for (ir::EinsumOp product : group) {
      operands.push_back(product.getRhs());
      results.push_back(product.getResult());
    }
    rows.push_back(operands);
    // A kernel with an epilogue does not write the product's own result.
    if (llvm::none_of(group, [](ir::EinsumOp product) {
          return ir::epilogueOf(product) != nullptr;
        }))
      rows.push_back(results);
  }
  return rows;
}

} // namespace mtplan::passes
