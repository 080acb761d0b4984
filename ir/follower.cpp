//===- follower.cpp - Who takes what an einsum makes ----------------------===//

#include "ir/follower.h"

#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::ir {

Operation *followerOf(Operation *einsum) {
  if (!isa<EinsumOp>(einsum))
    return nullptr;
  const Value made = einsum->getResult(0);
  for (Operation *user : made.getUsers()) {
    if (user->getBlock() != einsum->getBlock())
      continue;
    if (isa<ActivationOp>(user))
      return user;
    if (!made.hasOneUse())
      continue;
    // Not of what was activated, but of the gradient.
    auto grad = dyn_cast<ActivationGradOp>(user);
    if (isa<AddOp, AccumulateOp>(user) || (grad && grad->getOperand(1) == made))
      return user;
  }
  return nullptr;
}

} // namespace mtplan::ir
