//===- fusible.cpp - Which operators one kernel can compute ---------------===//

#include "passes/fuse/fusible.h"

#include "ir/decisions.h"

using namespace mlir;

namespace mtplan::passes {

// Epilogues of an einsum that have to be the only use of its result.
static bool isEpilogueOfEinsum(Operation *user, Value result) {
  // The gradient of an activation takes what was activated first and the
  // gradient, which the einsum makes, second.
  auto grad = llvm::dyn_cast<ir::ActivationGradOp>(user);
  return llvm::isa<ir::AddOp, ir::AccumulateOp>(user) ||
         (grad && grad->getOperand(1) == result);
}

static bool isEpilogueOfOnlyUse(Operation *producer, Operation *user) {
  const Value result = producer->getResult(0);
  if (llvm::isa<ir::EinsumOp>(producer))
    return isEpilogueOfEinsum(user, result);
  return llvm::isa<ir::SumOp>(producer) ? llvm::isa<ir::AccumulateOp>(user)
                                        : llvm::isa<ir::AddOp>(user);
}

Operation *fusibleConsumerOf(Operation *producer) {
  if (!llvm::isa<ir::EinsumOp, ir::SumOp, ir::DropoutOp, ir::LayerNormGradOp,
                 ir::RmsNormGradOp>(producer))
    return nullptr;
  const Value result = producer->getResult(0);
  for (Operation *user : result.getUsers()) {
    if (user->getBlock() != producer->getBlock())
      continue;
    if (llvm::isa<ir::EinsumOp>(producer) && llvm::isa<ir::ActivationOp>(user))
      return user;
    if (result.hasOneUse() && isEpilogueOfOnlyUse(producer, user))
      return user;
  }
  return nullptr;
}

static bool haveLikeEpilogues(Operation *one, Operation *other) {
  Operation *first = ir::epilogueOf(one), *second = ir::epilogueOf(other);
  return !first || !second ? first == second
                           : first->getName() == second->getName() &&
                                 first->getAttr(ir::kFirstTermAttrName) ==
                                     second->getAttr(ir::kFirstTermAttrName);
}

bool sharesKernel(ir::EinsumOp product, ir::SumOp sum) {
  return product->getNumOperands() == 2 &&
         product->getOperand(1) == sum->getOperand(0) &&
         haveLikeEpilogues(product, sum);
}

} // namespace mtplan::passes
