//===- loss_verifiers.cpp - Shapes of the cross entropy -------------------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Checks for one number per token: the logits' shape without the classes.
static LogicalResult checkPerToken(Operation *op, StringRef name, Value value,
                                   Value logits) {
  if (failed(expectAtLeastOneDim(op, "logits", logits)))
    return failure();
  return expectShape(op, name, value, tensorOf(logits).getShape().drop_back());
}

static LogicalResult checkClasses(Operation *op, uint64_t classes) {
  if (static_cast<int64_t>(classes) < 1)
    return op->emitOpError("needs at least 1 class, got ")
           << static_cast<int64_t>(classes);
  return success();
}

// Checks, in this order:
// - the result has the logits' shape without the last dimension;
// - `classes` is at least 1.
LogicalResult VocabMaxOp::verify() {
  if (failed(checkPerToken(*this, "result", getResult(), getLogits())))
    return failure();
  return checkClasses(*this, getClasses());
}

// Checks, in this order:
// - maximum and result have the logits' shape without the last dimension;
// - `classes` is at least 1.
LogicalResult VocabSumExpOp::verify() {
  if (failed(checkPerToken(*this, "maximum", getMaximum(), getLogits())) ||
      failed(checkPerToken(*this, "result", getResult(), getLogits())))
    return failure();
  return checkClasses(*this, getClasses());
}

// Checks:
// - targets and result have the logits' shape without the last dimension.
LogicalResult VocabPickOp::verify() {
  if (failed(checkPerToken(*this, "targets", getTargets(), getLogits())))
    return failure();
  return checkPerToken(*this, "result", getResult(), getLogits());
}

// Checks:
// - maximum, sum_exp, picked and targets have one shape; count and the result
//   are scalars.
LogicalResult TokenLossOp::verify() {
  ArrayRef<int64_t> tokens = tensorOf(getMaximum()).getShape();
  if (failed(expectShape(*this, "sum_exp", getSumExp(), tokens)) ||
      failed(expectShape(*this, "picked", getPicked(), tokens)) ||
      failed(expectShape(*this, "targets", getTargets(), tokens)) ||
      failed(expectRank(*this, "count", getCount(), 0)))
    return failure();
  return expectRank(*this, "result", getResult(), 0);
}

// Checks:
// - the result has the logits' shape; maximum, sum_exp and targets that
//   without the last dimension; count is a scalar; `classes` is at least 1.
LogicalResult CrossEntropyGradOp::verify() {
  if (failed(expectShape(*this, "result", getResult(),
                         tensorOf(getLogits()).getShape())) ||
      failed(checkPerToken(*this, "maximum", getMaximum(), getLogits())) ||
      failed(checkPerToken(*this, "sum_exp", getSumExp(), getLogits())) ||
      failed(checkPerToken(*this, "targets", getTargets(), getLogits())) ||
      failed(expectRank(*this, "count", getCount(), 0)))
    return failure();
  return checkClasses(*this, getClasses());
}

} // namespace mtplan::ir
