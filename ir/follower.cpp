//===- follower.cpp - Who takes what an operator makes --------------------===//

#include "ir/follower.h"

#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::ir {

// Who may follow an einsum if nobody else takes what it makes.
static bool mayFollowEinsum(Operation *user, Value made) {
  // Not of what was activated, but of the gradient.
  auto grad = dyn_cast<ActivationGradOp>(user);
  return isa<AddOp, AccumulateOp>(user) ||
         (grad && grad->getOperand(1) == made);
}

// The same of an operator that is not activated.
static bool mayFollow(Operation *op, Operation *user) {
  const Value made = op->getResult(0);
  return isa<EinsumOp>(op) ? mayFollowEinsum(user, made)
         : isa<SumOp>(op)  ? isa<AccumulateOp>(user)
                           : isa<AddOp>(user);
}

Operation *followerOf(Operation *op) {
  if (!isa<EinsumOp, SumOp, DropoutOp, LayerNormGradOp, RmsNormGradOp>(op))
    return nullptr;
  const Value made = op->getResult(0);
  for (Operation *user : made.getUsers()) {
    if (user->getBlock() != op->getBlock())
      continue;
    if (isa<EinsumOp>(op) && isa<ActivationOp>(user))
      return user;
    if (made.hasOneUse() && mayFollow(op, user))
      return user;
  }
  return nullptr;
}

Operation *productBeside(Operation *op) {
  auto sum = dyn_cast<SumOp>(op);
  if (!sum)
    return nullptr;
  for (Operation *user : sum->getOperand(0).getUsers()) {
    auto einsum = dyn_cast<EinsumOp>(user);
    if (einsum && einsum->getOperand(1) == sum->getOperand(0) &&
        einsum->getBlock() == op->getBlock() && einsum->isBeforeInBlock(op))
      return user;
  }
  return nullptr;
}

} // namespace mtplan::ir
