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

Operation *followerOf(Operation *op) {
  if (!isa<EinsumOp, DropoutOp>(op))
    return nullptr;
  const bool isEinsum = isa<EinsumOp>(op);
  const Value made = op->getResult(0);
  for (Operation *user : made.getUsers()) {
    if (user->getBlock() != op->getBlock())
      continue;
    if (isEinsum && isa<ActivationOp>(user))
      return user;
    if (made.hasOneUse() &&
        (isEinsum ? mayFollowEinsum(user, made) : isa<AddOp>(user)))
      return user;
  }
  return nullptr;
}

} // namespace mtplan::ir
