//===- loss.cpp - The cross entropy ---------------------------------------===//
//
// The cross entropy is differentiated as one function of the logits.
// mtp.token_loss finds the three reductions that it reads and builds one
// operator for the gradient of the logits. The reductions add no gradients.
//
//===----------------------------------------------------------------------===//

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

namespace {
/// Holds the dimensions of logits [d0, ..., v] and of one number per token [d0,
/// ...].
struct LossDims {
  FactorRule rule;
  TensorFactors logits, tokens;
};
} // namespace

static LossDims lossDims(Value logits) {
  LossDims dims;
  dims.logits = dims.tokens = addDims(dims.rule, shapeOf(logits).drop_back());
  dims.logits.push_back(
      {dims.rule.add("v", shapeOf(logits).back(), FactorRole::vocab)});
  return dims;
}

FactorRule VocabMaxOp::getFactorRule() {
  LossDims dims = lossDims(getLogits());
  dims.rule.factors[dims.rule.find("v")].max = true;
  return dims.rule.connect({dims.logits}, {dims.tokens});
}

FactorRule VocabSumExpOp::getFactorRule() {
  LossDims dims = lossDims(getLogits());
  return dims.rule.connect({dims.logits, dims.tokens}, {dims.tokens});
}

FactorRule VocabPickOp::getFactorRule() {
  LossDims dims = lossDims(getLogits());
  dims.rule.lookedUp = {0};
  return dims.rule.connect({dims.logits, dims.tokens}, {dims.tokens});
}

FactorRule TokenLossOp::getFactorRule() {
  FactorRule rule;
  TensorFactors tokens = addDims(rule, shapeOf(getMaximum()));
  return rule.connect({tokens, tokens, tokens, tokens, {}}, {{}});
}

FactorRule CrossEntropyGradOp::getFactorRule() {
  LossDims dims = lossDims(getLogits());
  return dims.rule.connect(
      {dims.logits, dims.tokens, dims.tokens, dims.tokens, {}}, {dims.logits});
}

double VocabMaxOp::getFlops() { return elementsOf(getLogits()); }
double VocabSumExpOp::getFlops() { return 10 * elementsOf(getLogits()); }
double VocabPickOp::getFlops() { return 0.0; }
double TokenLossOp::getFlops() { return 12 * elementsOf(getMaximum()); }
double CrossEntropyGradOp::getFlops() { return 10 * elementsOf(getLogits()); }

LogicalResult TokenLossOp::buildGradient(GradientBuilder &gradients) {
  if (failed(checkLossReaders(*this, getResult())))
    return failure();
  auto maximum = getMaximum().getDefiningOp<VocabMaxOp>();
  auto sumExp = getSumExp().getDefiningOp<VocabSumExpOp>();
  auto picked = getPicked().getDefiningOp<VocabPickOp>();
  if (!maximum || !sumExp || !picked)
    return emitOpError("has no gradient unless it reads mtp.vocab_max, "
                       "mtp.vocab_sum_exp and mtp.vocab_pick");
  Value logits = picked.getLogits();
  if (maximum.getLogits() != logits || sumExp.getLogits() != logits ||
      sumExp.getMaximum() != getMaximum() ||
      picked.getTargets() != getTargets())
    return emitOpError("has no gradient: its maximum, sum_exp and picked are "
                       "not of the same logits and targets");
  if (maximum.getClasses() != sumExp.getClasses())
    return emitOpError("has no gradient: its maximum is over ")
           << maximum.getClasses() << " classes, its sum_exp over "
           << sumExp.getClasses();
  if (!GradientBuilder::wants(logits))
    return success();
  auto dlogits = gradients.builder.create<CrossEntropyGradOp>(
      getLoc(), logits.getType(), getLabel().str() + ".grad", logits,
      getMaximum(), getSumExp(), getTargets(), getCount(), sumExp.getClasses());
  gradients.add(logits, dlogits.getResult(), getLabel());
  return success();
}

static LogicalResult checkPerToken(Operation *op, StringRef name, Value value,
                                   Value logits) {
  return failure(
      failed(expectAtLeastOneDim(op, "logits", logits)) ||
      failed(expectShape(op, name, value, shapeOf(logits).drop_back())));
}

static LogicalResult checkClasses(Operation *op, uint64_t classes) {
  if (static_cast<int64_t>(classes) < 1)
    return op->emitOpError("needs at least 1 class, got ")
           << static_cast<int64_t>(classes);
  return success();
}

LogicalResult VocabMaxOp::verify() {
  return failure(
      failed(checkPerToken(*this, "result", getResult(), getLogits())) ||
      failed(checkClasses(*this, getClasses())));
}

LogicalResult VocabSumExpOp::verify() {
  return failure(
      failed(checkPerToken(*this, "maximum", getMaximum(), getLogits())) ||
      failed(checkPerToken(*this, "result", getResult(), getLogits())) ||
      failed(checkClasses(*this, getClasses())));
}

LogicalResult VocabPickOp::verify() {
  return failure(
      failed(checkPerToken(*this, "targets", getTargets(), getLogits())) ||
      failed(checkPerToken(*this, "result", getResult(), getLogits())));
}

LogicalResult TokenLossOp::verify() {
  ArrayRef<int64_t> tokens = shapeOf(getMaximum());
  return failure(failed(expectShape(*this, "sum_exp", getSumExp(), tokens)) ||
                 failed(expectShape(*this, "picked", getPicked(), tokens)) ||
                 failed(expectShape(*this, "targets", getTargets(), tokens)) ||
                 failed(expectRank(*this, "count", getCount(), 0)) ||
                 failed(expectRank(*this, "result", getResult(), 0)));
}

LogicalResult CrossEntropyGradOp::verify() {
  return failure(
      failed(expectShape(*this, "result", getResult(), shapeOf(getLogits()))) ||
      failed(checkPerToken(*this, "maximum", getMaximum(), getLogits())) ||
      failed(checkPerToken(*this, "sum_exp", getSumExp(), getLogits())) ||
      failed(checkPerToken(*this, "targets", getTargets(), getLogits())) ||
      failed(expectRank(*this, "count", getCount(), 0)) ||
      failed(checkClasses(*this, getClasses())));
}

} // namespace mtplan::ir
