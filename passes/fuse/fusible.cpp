//===- fusible.cpp - Which operators one kernel can compute ---------------===//

#include "passes/fuse/fusible.h"

#include <algorithm>

#include "ir/decisions.h"
#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::passes {

static bool isEpilogueOfEinsum(Operation *user, Value result) {
  // mtp.activation_grad reads the activation's input first and the gradient,
  // which the einsum computes, second.
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

SmallVector<Operation *> kernelOf(Operation *head) {
  SmallVector<Operation *> kernel{head};
  for (Operation *op = head->getNextNode(); op && ir::isFused(op);
       op = op->getNextNode())
    kernel.push_back(op);
  return kernel;
}

bool mayBeBatched(ir::EinsumOp product) {
  Operation *epilogue = ir::epilogueOf(product);
  return !epilogue || llvm::isa<ir::AddOp, ir::AccumulateOp>(epilogue);
}

// Returns whether two operations have equal names, types and attributes, except
// for labels, layouts, launch numbers and mtp.own_sum, which do not change a
// result.
static bool computeAlike(Operation *one, Operation *other) {
  const auto settings = [](Operation *op) {
    NamedAttrList all(op->getAttrDictionary());
    for (StringRef name :
         {StringRef("label"), StringRef("layout"),
          StringRef(ir::kBatchAttrName), StringRef(ir::kOwnSumAttrName)})
      all.erase(name);
    return all.getDictionary(op->getContext());
  };
  return one->getName() == other->getName() &&
         one->getOperandTypes() == other->getOperandTypes() &&
         one->getResultTypes() == other->getResultTypes() &&
         settings(one) == settings(other);
}

bool differOnlyInTensors(ir::EinsumOp one, ir::EinsumOp other) {
  return std::ranges::equal(kernelOf(one), kernelOf(other), computeAlike);
}

bool sharesKernel(ir::EinsumOp product, ir::SumOp sum) {
  return product->getNumOperands() == 2 &&
         product->getOperand(1) == sum->getOperand(0) &&
         haveLikeEpilogues(product, sum);
}

static bool isMadeAfter(Value operand, Operation *early) {
  Operation *maker = operand.getDefiningOp();
  return maker && maker->getBlock() == early->getBlock() &&
         early->isBeforeInBlock(maker);
}

bool isAddedToBetween(Operation *early, Operation *late) {
  auto sum = llvm::dyn_cast<ir::AccumulateOp>(late);
  for (Operation *op = early->getNextNode(); sum && op != late;
       op = op->getNextNode())
    if (auto other = llvm::dyn_cast<ir::AccumulateOp>(op);
        other && other.getLabel() == sum.getLabel())
      return true;
  return false;
}

bool mayMoveAfter(Operation *op, Operation *early) {
  return !isAddedToBetween(early, op) &&
         llvm::none_of(op->getOperands(), [&](Value operand) {
           return isMadeAfter(operand, early) &&
                  !operand.getDefiningOp<ir::ParameterOp>();
         });
}

void moveRightAfter(Operation *op, Operation *early) {
  for (Value operand : op->getOperands())
    if (isMadeAfter(operand, early))
      operand.getDefiningOp()->moveBefore(early);
  op->moveAfter(early);
}

bool isUsedBefore(Operation *op, Operation *late) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    Operation *there = op->getBlock()->findAncestorOpInBlock(*user);
    return there && there->isBeforeInBlock(late);
  });
}

} // namespace mtplan::passes
