//===- attention_rules.cpp - Factors and flops of attention and RoPE ------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

// The dimensions are q [b, s, (g r d)], k and v [b, k, (g d)], lse [b, s, (g
// r)] and bias [n, (g r)].
namespace {
struct AttentionDims {
  FactorRule rule;
  TensorFactors query, key, lse, bias;
};
} // namespace

static AttentionDims attentionDims(Value query, Value key, Value bias,
                                   int64_t headDim, bool causal) {
  AttentionDims dims;
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key);
  FactorRule &rule = dims.rule;
  int64_t groups = std::max<int64_t>(1, k[2] / headDim);
  int b = rule.add("b", q[0]);
  int s = rule.add("s", q[1]);
  int g = rule.add("g", groups, FactorRole::head);
  int r = rule.add("r", q[2] / headDim / groups);
  int d = rule.add("d", headDim);
  int keys = rule.add("k", k[1]);
  rule.factors[r].divisible = rule.factors[d].divisible = false;
  rule.factors[keys].divisible = false;
  // The rank with the last queries attends to all keys: over n ranks it has (2n
  // - 1) / n times the mean work.
  rule.factors[s].skew = causal ? 1.0 : 0.0;
  dims.query = {{b}, {s}, {g, r, d}};
  dims.key = {{b}, {keys}, {g, d}};
  dims.lse = {{b}, {s}, {g, r}};
  if (bias) {
    int n = rule.add("n", shapeOf(bias).front());
    rule.factors[n].divisible = false;
    dims.bias = {{n}, {g, r}};
  }
  return dims;
}

FactorRule AttentionOp::getFactorRule() {
  AttentionDims dims =
      attentionDims(getQuery(), getKey(), getBias(), getHeadDim(), getCausal());
  dims.rule.operands = {dims.query, dims.key, dims.key};
  dims.rule.results = {dims.query, dims.lse};
  if (getBias())
    dims.rule.operands.push_back(dims.bias);
  return dims.rule;
}

FactorRule AttentionGradOp::getFactorRule() {
  AttentionDims dims =
      attentionDims(getQuery(), getKey(), getBias(), getHeadDim(), getCausal());
  dims.rule.operands = {dims.query, dims.key, dims.key,
                        dims.query, dims.lse, dims.query};
  dims.rule.results = {dims.query, dims.key, dims.key};
  if (getBias()) {
    dims.rule.operands.push_back(dims.bias);
    dims.rule.results.push_back(dims.bias);
  }
  return dims.rule;
}

// Counts two products over all pairs of positions forward and five backward,
// which computes the scores again. A causal mask leaves half of the pairs.
static double attentionFlops(Value query, Value key, bool causal,
                             double products) {
  double pairs = elementsOf(query) * static_cast<double>(shapeOf(key)[1]);
  return products * 2.0 * pairs * (causal ? 0.5 : 1.0);
}

double AttentionOp::getFlops() {
  return attentionFlops(getQuery(), getKey(), getCausal(), 2.0);
}

double AttentionGradOp::getFlops() {
  return attentionFlops(getQuery(), getKey(), getCausal(), 5.0);
}

FactorRule RopeOp::getFactorRule() {
  FactorRule rule;
  ArrayRef<int64_t> shape = shapeOf(getInput());
  int64_t headDim = getHeadDim();
  int b = rule.add("b", shape[0]);
  int s = rule.add("s", shape[1]);
  int a = rule.add("a", shape[2] / headDim, FactorRole::head);
  int d = rule.add("d", headDim);
  rule.factors[d].divisible = false;
  rule.operands = {{{b}, {s}, {a, d}}};
  rule.results = rule.operands;
  rule.linearGroups = {{0}};
  return rule;
}

double RopeOp::getFlops() { return 3 * elementsOf(getInput()); }

} // namespace mtplan::ir
