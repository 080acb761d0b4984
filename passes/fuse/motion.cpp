//===- motion.cpp - Operations change places in a block -------------------===//

#include "passes/fuse/motion.h"

#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::passes {

// Reads of parameters are no instructions and may be anywhere.
static bool isMadeBehind(Value operand, Operation *early) {
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

bool mayMoveBehind(Operation *op, Operation *early) {
  return !isAddedToBetween(early, op) &&
         llvm::none_of(op->getOperands(), [&](Value operand) {
           return isMadeBehind(operand, early) &&
                  !operand.getDefiningOp<ir::ParameterOp>();
         });
}

void moveBehind(Operation *op, Operation *early) {
  for (Value operand : op->getOperands())
    if (isMadeBehind(operand, early))
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
