//===- moe.cpp - Mixtures of experts --------------------------------------===//
//
// The assignment of tokens to experts is piecewise constant, so slots have no
// gradient. The router learns through the gates and the balance loss.
//
//===----------------------------------------------------------------------===//

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

// Returns the factors of logits [b, s, e] and sets `dims` to their dimensions.
// The logits cannot be sharded along the experts. If `wholeSamples`, the logits
// cannot be sharded along the positions, either.
static FactorRule choiceRule(Value logits, TensorFactors &dims,
                             bool wholeSamples) {
  FactorRule rule;
  ArrayRef<int64_t> shape = shapeOf(logits);
  int b = rule.add("b", shape[0]);
  int s = rule.add("s", shape[1]);
  int e = rule.add("e", shape[2], FactorRole::expert);
  rule.factors[s].divisible = !wholeSamples;
  rule.factors[e].divisible = false;
  dims = {{b}, {s}, {e}};
  return rule;
}

FactorRule MoeGateOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/false);
  return rule.connect({dims}, {dims});
}

FactorRule MoeGateGradOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/false);
  return rule.connect({dims, dims}, {dims}, {{1}});
}

FactorRule MoeSlotsOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/true);
  return rule.connect({dims}, {dims});
}

FactorRule BalanceLossOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/true);
  return rule.connect({dims, {}}, {{}});
}

FactorRule BalanceLossGradOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/true);
  return rule.connect({dims, {}}, {dims});
}

// Returns the number of operations on the logits: one per logit and chosen
// expert, and `others` more per logit.
static double choiceFlops(Value logits, uint64_t topK, double others) {
  return (static_cast<double>(topK) + others) * elementsOf(logits);
}

double MoeGateOp::getFlops() { return choiceFlops(getLogits(), getTopK(), 12); }
double MoeGateGradOp::getFlops() {
  return choiceFlops(getLogits(), getTopK(), 16);
}
double MoeSlotsOp::getFlops() { return choiceFlops(getLogits(), getTopK(), 1); }
double BalanceLossOp::getFlops() {
  return choiceFlops(getLogits(), getTopK(), 12);
}
double BalanceLossGradOp::getFlops() {
  return choiceFlops(getLogits(), getTopK(), 16);
}

namespace {
/// Holds the dimensions of tokens [b, s, h], of dispatched tokens [e, b, c, h]
/// in `places`, and of slots [b, s, e].
struct MoeDims {
  FactorRule rule;
  TensorFactors tokens, places, slots;
};
} // namespace

// A slot is a position in the whole queue of an expert, so the capacity c
// cannot be sharded.
static MoeDims moeDims(Value tokens, Value places) {
  MoeDims dims;
  FactorRule &rule = dims.rule;
  ArrayRef<int64_t> shape = shapeOf(tokens);
  int b = rule.add("b", shape[0]);
  int s = rule.add("s", shape[1]);
  int e = rule.add("e", shapeOf(places)[0], FactorRole::expert);
  int c = rule.add("c", shapeOf(places)[2]);
  int h = rule.add("h", shape[2]);
  rule.factors[c].divisible = false;
  dims.tokens = {{b}, {s}, {h}};
  dims.places = {{e}, {b}, {c}, {h}};
  dims.slots = {{b}, {s}, {e}};
  return dims;
}

FactorRule MoeDispatchOp::getFactorRule() {
  MoeDims dims = moeDims(getInput(), getResult());
  return dims.rule.connect({dims.tokens, dims.slots}, {dims.places}, {{0}});
}

FactorRule MoeDispatchGradOp::getFactorRule() {
  MoeDims dims = moeDims(getResult(), getGradient());
  return dims.rule.connect({dims.slots, dims.places}, {dims.tokens}, {{1}});
}

FactorRule MoeCombineOp::getFactorRule() {
  MoeDims dims = moeDims(getResult(), getInput());
  return dims.rule.connect({dims.places, dims.slots, dims.slots}, {dims.tokens},
                           {{0}, {1}});
}

FactorRule MoeCombineGradOp::getFactorRule() {
  MoeDims dims = moeDims(getGradient(), getInput());
  return dims.rule.connect({dims.places, dims.slots, dims.slots, dims.tokens},
                           {dims.places, dims.slots}, {{3}});
}

// Dispatch copies tokens and has no arithmetic.
double MoeDispatchOp::getFlops() { return 0.0; }
double MoeDispatchGradOp::getFlops() { return elementsOf(getGradient()); }
double MoeCombineOp::getFlops() { return 2 * elementsOf(getInput()); }
double MoeCombineGradOp::getFlops() { return 3 * elementsOf(getInput()); }

LogicalResult MoeGateOp::buildGradient(GradientBuilder &gradients) {
  return addGradientOf(getLogits(), *this, gradients, ".grad",
                       [&](StringRef label, Value dy) {
                         return gradients.builder.create<MoeGateGradOp>(
                             getLoc(), getLogits().getType(), label,
                             getLogits(), dy, getTopK(), getNormalise());
                       });
}

LogicalResult MoeSlotsOp::buildGradient(GradientBuilder &) { return success(); }

LogicalResult MoeDispatchOp::buildGradient(GradientBuilder &gradients) {
  return addGradientOf(
      getInput(), *this, gradients, ".grad", [&](StringRef label, Value dy) {
        return gradients.builder.create<MoeDispatchGradOp>(
            getLoc(), getInput().getType(), label, getSlots(), dy);
      });
}

LogicalResult MoeCombineOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<MoeCombineGradOp>(
      getLoc(), getInput().getType(), getGates().getType(),
      getLabel().str() + ".grad", getInput(), getGates(), getSlots(), dy);
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getGates(), terms.getGatesGradient(), getLabel());
  return success();
}

LogicalResult BalanceLossOp::buildGradient(GradientBuilder &gradients) {
  if (failed(checkLossReaders(*this, getResult())))
    return failure();
  if (!GradientBuilder::wants(getLogits()))
    return success();
  auto dlogits = gradients.builder.create<BalanceLossGradOp>(
      getLoc(), getLogits().getType(), getLabel().str() + ".grad", getLogits(),
      getCount(), getTopK(), getCoefficient());
  gradients.add(getLogits(), dlogits.getResult(), getLabel());
  return success();
}

static LogicalResult checkChoice(Operation *op, Value logits, uint64_t topK) {
  if (failed(expectRank(op, "logits", logits, 3)))
    return failure();
  int64_t experts = shapeOf(logits)[2];
  auto chosen = static_cast<int64_t>(topK);
  if (chosen < 1 || chosen > experts)
    return op->emitOpError("needs a top_k from 1 to its ")
           << experts << " experts, got " << chosen;
  return success();
}

LogicalResult MoeGateOp::verify() {
  return checkChoice(*this, getLogits(), getTopK());
}

LogicalResult MoeGateGradOp::verify() {
  return checkChoice(*this, getLogits(), getTopK());
}

LogicalResult MoeSlotsOp::verify() {
  return failure(
      failed(checkChoice(*this, getLogits(), getTopK())) ||
      failed(expectShape(*this, "result", getResult(), shapeOf(getLogits()))) ||
      failed(expectIntegers(*this, "result", getResult())));
}

static LogicalResult checkPlaces(Operation *op, StringRef tokensName,
                                 Value tokens, Value slots,
                                 StringRef placesName, Value places) {
  if (failed(expectRank(op, tokensName, tokens, 3)) ||
      failed(expectIntegers(op, "slots", slots)) ||
      failed(expectRank(op, "slots", slots, 3)) ||
      failed(expectRank(op, placesName, places, 4)))
    return failure();
  ArrayRef<int64_t> token = shapeOf(tokens);
  ArrayRef<int64_t> place = shapeOf(places);
  return failure(
      failed(expectShape(op, "slots", slots, {token[0], token[1], place[0]})) ||
      failed(expectShape(op, placesName, places,
                         {place[0], token[0], place[2], token[2]})));
}

LogicalResult MoeDispatchOp::verify() {
  return checkPlaces(*this, "input", getInput(), getSlots(), "result",
                     getResult());
}

LogicalResult MoeDispatchGradOp::verify() {
  return checkPlaces(*this, "result", getResult(), getSlots(), "gradient",
                     getGradient());
}

LogicalResult MoeCombineOp::verify() {
  return failure(
      failed(checkPlaces(*this, "result", getResult(), getSlots(), "input",
                         getInput())) ||
      failed(expectShape(*this, "gates", getGates(), shapeOf(getSlots()))));
}

LogicalResult MoeCombineGradOp::verify() {
  return failure(
      failed(checkPlaces(*this, "gradient", getGradient(), getSlots(), "input",
                         getInput())) ||
      failed(expectShape(*this, "gates", getGates(), shapeOf(getSlots()))) ||
      failed(expectType(*this, "input gradient", getInputGradient(),
                        getInput().getType())) ||
      failed(expectType(*this, "gates gradient", getGatesGradient(),
                        getGates().getType())));
}

LogicalResult BalanceLossOp::verify() {
  return failure(failed(checkChoice(*this, getLogits(), getTopK())) ||
                 failed(expectRank(*this, "count", getCount(), 0)) ||
                 failed(expectRank(*this, "result", getResult(), 0)));
}

LogicalResult BalanceLossGradOp::verify() {
  return failure(
      failed(checkChoice(*this, getLogits(), getTopK())) ||
      failed(expectRank(*this, "count", getCount(), 0)) ||
      failed(expectType(*this, "result", getResult(), getLogits().getType())));
}

} // namespace mtplan::ir
