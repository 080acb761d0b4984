//===- attention.cpp - Attention and rotary positions ---------------------===//

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

namespace {
/// Holds the dimensions of q [b, s, (g r d)], k and v [b, k, (g d)], lse [b, s,
/// (g r)] and bias [n, (g r)]. Here g counts key/value heads, r query heads per
/// key/value head, d features of a head, and n buckets of distances.
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
  // With a causal mask and n ranks, the rank with the last queries attends to
  // all keys and does (2n - 1) / n times the mean work.
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
  dims.rule.connect({dims.query, dims.key, dims.key}, {dims.query, dims.lse});
  if (getBias())
    dims.rule.operands.push_back(dims.bias);
  return dims.rule;
}

FactorRule AttentionGradOp::getFactorRule() {
  AttentionDims dims =
      attentionDims(getQuery(), getKey(), getBias(), getHeadDim(), getCausal());
  dims.rule.connect(
      {dims.query, dims.key, dims.key, dims.query, dims.lse, dims.query},
      {dims.query, dims.key, dims.key});
  if (getBias()) {
    dims.rule.operands.push_back(dims.bias);
    dims.rule.results.push_back(dims.bias);
  }
  return dims.rule;
}

// Returns the number of operations of `products` matrix products over all pairs
// of positions. Forward has two products. Backward has five, because it
// recomputes the scores. A causal mask halves the number of pairs.
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
  TensorFactors dims = {{b}, {s}, {a, d}};
  return rule.connect({dims}, {dims}, {{0}});
}

double RopeOp::getFlops() { return 3 * elementsOf(getInput()); }

LogicalResult AttentionOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.gradientOf(getLse()))
    return emitOpError("gets a gradient for its lse, which has none: it is "
                       "there for mtp.attention_grad alone");
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<AttentionGradOp>(
      getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(),
      getBias() ? getBias().getType() : Type(),
      gradients.builder.getStringAttr(getLabel() + ".grad"), getQuery(),
      getKey(), getValue(), getResult(), getLse(), dy, getBias(),
      getHeadDimAttr(), getCausalAttr(), getScaleAttr(), getRateAttr(),
      getMaskAttr(), getMaxDistanceAttr(), getSoftcapAttr());
  gradients.add(getQuery(), terms.getQueryGradient(), getLabel());
  gradients.add(getKey(), terms.getKeyGradient(), getLabel());
  gradients.add(getValue(), terms.getValueGradient(), getLabel());
  if (getBias())
    gradients.add(getBias(), terms.getBiasGradient(), getLabel());
  return success();
}

// The transpose of a rotation is the inverse rotation.
LogicalResult RopeOp::buildGradient(GradientBuilder &gradients) {
  return addGradientOf(getInput(), *this, gradients, ".dx",
                       [&](StringRef label, Value dy) {
                         return gradients.builder.create<RopeOp>(
                             getLoc(), label, dy, getHeadDim(), getRotaryDim(),
                             getTheta(), getInterleaved(), !getInverse());
                       });
}

static LogicalResult checkAttentionInputs(Operation *op, Value query, Value key,
                                          Value value, int64_t headDim) {
  if (failed(expectRank(op, "query", query, 3)) ||
      failed(expectRank(op, "key", key, 3)) ||
      failed(expectType(op, "value", value, key.getType())))
    return failure();
  ArrayRef<int64_t> queries = shapeOf(query);
  ArrayRef<int64_t> keys = shapeOf(key);
  if (queries[0] != keys[0])
    return op->emitOpError("query has ")
           << queries[0] << " samples, key has " << keys[0];
  if (failed(expectHeads(op, "query", queries[2], headDim)) ||
      failed(expectHeads(op, "key", keys[2], headDim)))
    return failure();
  int64_t heads = queries[2] / headDim, groups = keys[2] / headDim;
  if (groups < 1 || heads % groups != 0)
    return op->emitOpError("has ")
           << heads << " heads, needs a multiple of its " << groups
           << " key/value heads";
  return success();
}

static LogicalResult checkLse(Operation *op, Value lse, Value query,
                              int64_t headDim) {
  ArrayRef<int64_t> queries = shapeOf(query);
  return expectShape(op, "lse", lse,
                     {queries[0], queries[1], queries[2] / headDim});
}

static LogicalResult checkBias(Operation *op, Value bias,
                               std::optional<uint64_t> maxDistance, bool capped,
                               Value query, int64_t headDim) {
  if (!bias == maxDistance.has_value())
    return op->emitOpError(bias ? "has a bias, but no max_distance"
                                : "has a max_distance, but no bias");
  if (!bias)
    return success();
  if (capped)
    return op->emitOpError(
        "has a softcap and a bias, which exclude each other");
  if (failed(expectRank(op, "bias", bias, 2)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(bias);
  if (shape[0] < 4)
    return op->emitOpError("bias has ")
           << shape[0] << " rows, needs at least 4";
  int64_t heads = shapeOf(query)[2] / headDim;
  if (shape[1] != heads)
    return op->emitOpError("bias has ")
           << shape[1] << " columns, needs one for each of " << heads
           << " heads";
  if (*maxDistance < 2)
    return op->emitOpError("needs a max_distance of at least 2, got ")
           << *maxDistance;
  return success();
}

LogicalResult AttentionOp::verify() {
  auto headDim = static_cast<int64_t>(getHeadDim());
  return failure(
      failed(checkAttentionInputs(*this, getQuery(), getKey(), getValue(),
                                  headDim)) ||
      failed(expectType(*this, "result", getResult(), getQuery().getType())) ||
      failed(checkLse(*this, getLse(), getQuery(), headDim)) ||
      failed(expectRate(*this, getRate())) ||
      failed(checkBias(*this, getBias(), getMaxDistance(),
                       getSoftcap().has_value(), getQuery(), headDim)));
}

LogicalResult AttentionGradOp::verify() {
  auto headDim = static_cast<int64_t>(getHeadDim());
  Type query = getQuery().getType(), key = getKey().getType();
  if (failed(checkAttentionInputs(*this, getQuery(), getKey(), getValue(),
                                  headDim)) ||
      failed(expectType(*this, "output", getOutput(), query)) ||
      failed(checkLse(*this, getLse(), getQuery(), headDim)) ||
      failed(expectRate(*this, getRate())) ||
      failed(expectType(*this, "gradient", getGradient(), query)) ||
      failed(expectType(*this, "query gradient", getQueryGradient(), query)) ||
      failed(expectType(*this, "key gradient", getKeyGradient(), key)) ||
      failed(expectType(*this, "value gradient", getValueGradient(), key)) ||
      failed(checkBias(*this, getBias(), getMaxDistance(),
                       getSoftcap().has_value(), getQuery(), headDim)))
    return failure();
  if (!getBias() != !getBiasGradient())
    return emitOpError(getBias()
                           ? "has a bias, but makes no gradient of it"
                           : "makes the gradient of a bias, but has none");
  return getBias() ? expectType(*this, "bias gradient", getBiasGradient(),
                                getBias().getType())
                   : success();
}

LogicalResult RopeOp::verify() {
  auto headDim = static_cast<int64_t>(getHeadDim());
  auto rotaryDim = static_cast<int64_t>(getRotaryDim());
  if (failed(expectRank(*this, "input", getInput(), 3)) ||
      failed(expectHeads(*this, "input", shapeOf(getInput())[2], headDim)))
    return failure();
  if (rotaryDim < 2 || rotaryDim % 2 != 0 || rotaryDim > headDim)
    return emitOpError("needs an even rotary_dim from 2 to head_dim, ")
           << headDim << ", got " << rotaryDim;
  double theta = getTheta().convertToDouble();
  if (!(theta > 0.0))
    return emitOpError("needs a theta above 0, got ") << theta;
  return success();
}

} // namespace mtplan::ir
