//===- pointwise_verifiers.cpp - Verifiers of pointwise operators ---------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Checks:
// - `rate` is at least 0 and below 1.
LogicalResult DropoutOp::verify() { return expectRate(*this, getRate()); }

} // namespace mtplan::ir
