//===- moe_rules.cpp - Factors and flops of experts -----------------------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// What reads the logits [b, s, e]: all experts of a token at once
//===----------------------------------------------------------------------===//

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
  rule.operands = {dims};
  rule.results = {dims};
  return rule;
}

FactorRule MoeGateGradOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/false);
  rule.operands = {dims, dims};
  rule.results = {dims};
  rule.linearGroups = {{1}};
  return rule;
}

FactorRule MoeSlotsOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/true);
  rule.operands = {dims};
  rule.results = {dims};
  return rule;
}

FactorRule BalanceLossOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/true);
  rule.operands = {dims, {}};
  rule.results = {{}};
  return rule;
}

FactorRule BalanceLossGradOp::getFactorRule() {
  TensorFactors dims;
  FactorRule rule = choiceRule(getLogits(), dims, /*wholeSamples=*/true);
  rule.operands = {dims, {}};
  rule.results = {dims};
  return rule;
}

// Counts a pass over the experts for each of a token's choices.
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

//===----------------------------------------------------------------------===//
// Tokens [b, s, h] and places [e, b, c, h]
//===----------------------------------------------------------------------===//

namespace {
struct MoeDims {
  FactorRule rule;
  TensorFactors tokens, places, slots;
};
} // namespace

// Slots number the whole queue of an expert, so that it cannot be sharded.
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
  dims.rule.operands = {dims.tokens, dims.slots};
  dims.rule.results = {dims.places};
  dims.rule.linearGroups = {{0}};
  return dims.rule;
}

FactorRule MoeDispatchGradOp::getFactorRule() {
  MoeDims dims = moeDims(getResult(), getGradient());
  dims.rule.operands = {dims.slots, dims.places};
  dims.rule.results = {dims.tokens};
  dims.rule.linearGroups = {{1}};
  return dims.rule;
}

FactorRule MoeCombineOp::getFactorRule() {
  MoeDims dims = moeDims(getResult(), getInput());
  dims.rule.operands = {dims.places, dims.slots, dims.slots};
  dims.rule.results = {dims.tokens};
  dims.rule.linearGroups = {{0}, {1}};
  return dims.rule;
}

FactorRule MoeCombineGradOp::getFactorRule() {
  MoeDims dims = moeDims(getGradient(), getInput());
  dims.rule.operands = {dims.places, dims.slots, dims.slots, dims.tokens};
  dims.rule.results = {dims.places, dims.slots};
  dims.rule.linearGroups = {{3}};
  return dims.rule;
}

// A copy has no arithmetic.
double MoeDispatchOp::getFlops() { return 0.0; }
double MoeDispatchGradOp::getFlops() { return elementsOf(getGradient()); }
double MoeCombineOp::getFlops() { return 2 * elementsOf(getInput()); }
double MoeCombineGradOp::getFlops() { return 3 * elementsOf(getInput()); }

} // namespace mtplan::ir
