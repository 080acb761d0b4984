//===- norm_verifiers.cpp - Shapes of norms and their gradients -----------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Checks for a vector with one entry for each feature of a row.
static LogicalResult checkVector(Operation *op, StringRef name, Value vector,
                                 Value input) {
  if (failed(expectAtLeastOneDim(op, "input", input)))
    return failure();
  return expectVectorOf(op, name, vector, input);
}

// Checks, in this order:
// - `gamma` and `beta` have one dimension, of the size of the input's last;
// - the result has the input's type.
LogicalResult LayerNormOp::verify() {
  if (failed(checkVector(*this, "gamma", getGamma(), getInput())) ||
      failed(checkVector(*this, "beta", getBeta(), getInput())))
    return failure();
  return expectType(*this, "result", getResult(), getInput().getType());
}

// Checks, in this order:
// - `gamma` has one dimension, of the size of the input's last;
// - the gradient has the input's type; results are those of input and gamma,
//   twice.
LogicalResult LayerNormGradOp::verify() {
  Type input = getInput().getType(), gamma = getGamma().getType();
  if (failed(checkVector(*this, "gamma", getGamma(), getInput())) ||
      failed(expectType(*this, "gradient", getGradient(), input)) ||
      failed(expectType(*this, "input gradient", getInputGradient(), input)) ||
      failed(expectType(*this, "gamma gradient", getGammaGradient(), gamma)))
    return failure();
  return expectType(*this, "beta gradient", getBetaGradient(), gamma);
}

// Checks, in this order:
// - `gamma` has one dimension, of the size of the input's last;
// - the result has the input's type.
LogicalResult RmsNormOp::verify() {
  if (failed(checkVector(*this, "gamma", getGamma(), getInput())))
    return failure();
  return expectType(*this, "result", getResult(), getInput().getType());
}

// Checks, in this order:
// - `gamma` has one dimension, of the size of the input's last;
// - the gradient has the input's type; results are those of input and gamma.
LogicalResult RmsNormGradOp::verify() {
  Type input = getInput().getType(), gamma = getGamma().getType();
  if (failed(checkVector(*this, "gamma", getGamma(), getInput())) ||
      failed(expectType(*this, "gradient", getGradient(), input)) ||
      failed(expectType(*this, "input gradient", getInputGradient(), input)))
    return failure();
  return expectType(*this, "gamma gradient", getGammaGradient(), gamma);
}

} // namespace mtplan::ir
