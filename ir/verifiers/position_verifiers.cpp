//===- position_verifiers.cpp - Shapes of the first position --------------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Checks that `first` has the shape of `all` without its positions.
static LogicalResult checkFirst(Operation *op, StringRef allName, Value all,
                                StringRef firstName, Value first) {
  if (failed(expectRank(op, allName, all, 3)))
    return failure();
  ArrayRef<int64_t> shape = tensorOf(all).getShape();
  return expectShape(op, firstName, first, {shape[0], shape[2]});
}

// Checks, in this order:
// - the input has three dimensions and the result its type;
// - the vector has one, of the size of the input's last.
LogicalResult PutFirstOp::verify() {
  if (failed(expectRank(*this, "input", getInput(), 3)) ||
      failed(expectType(*this, "result", getResult(), getInput().getType())))
    return failure();
  return expectVectorOf(*this, "vector", getVector(), getInput());
}

// Checks:
// - the gradient has three dimensions; the results have its type and that of a
//   vector of its last dimension.
LogicalResult PutFirstGradOp::verify() {
  if (failed(expectRank(*this, "gradient", getGradient(), 3)) ||
      failed(expectType(*this, "input gradient", getInputGradient(),
                        getGradient().getType())))
    return failure();
  return expectVectorOf(*this, "vector gradient", getVectorGradient(),
                        getGradient());
}

// Checks:
// - the input has three dimensions, the result the first and last of them.
LogicalResult TakeFirstOp::verify() {
  return checkFirst(*this, "input", getInput(), "result", getResult());
}

// Checks:
// - the result has three dimensions, the gradient the first and last of them.
LogicalResult TakeFirstGradOp::verify() {
  return checkFirst(*this, "result", getResult(), "gradient", getGradient());
}

} // namespace mtplan::ir
