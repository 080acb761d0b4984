//===- attention_verifiers.cpp - Shapes of attention and RoPE -------------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Checks that heads of `headDim` features fill `width`.
static LogicalResult checkHeads(Operation *op, StringRef name, int64_t width,
                                int64_t headDim) {
  if (headDim < 1)
    return op->emitOpError("needs a head_dim of at least 1, got ") << headDim;
  if (width % headDim != 0)
    return op->emitOpError()
           << name << " has " << width
           << " features, needs a multiple of head_dim, " << headDim;
  return success();
}

// Checks the first two constraints of attention, which its gradient shares.
static LogicalResult checkAttentionInputs(Operation *op, Value query, Value key,
                                          Value value, int64_t headDim) {
  if (failed(expectRank(op, "query", query, 3)) ||
      failed(expectRank(op, "key", key, 3)) ||
      failed(expectType(op, "value", value, key.getType())))
    return failure();
  ArrayRef<int64_t> queries = tensorOf(query).getShape();
  ArrayRef<int64_t> keys = tensorOf(key).getShape();
  if (queries[0] != keys[0])
    return op->emitOpError("query has ")
           << queries[0] << " samples, key has " << keys[0];
  if (failed(checkHeads(op, "query", queries[2], headDim)) ||
      failed(checkHeads(op, "key", keys[2], headDim)))
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
  ArrayRef<int64_t> queries = tensorOf(query).getShape();
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
  ArrayRef<int64_t> shape = tensorOf(bias).getShape();
  if (shape[0] < 4)
    return op->emitOpError("bias has ")
           << shape[0] << " rows, needs at least 4";
  int64_t heads = tensorOf(query).getDimSize(2) / headDim;
  if (shape[1] != heads)
    return op->emitOpError("bias has ")
           << shape[1] << " columns, needs one for each of " << heads
           << " heads";
  if (*maxDistance < 2)
    return op->emitOpError("needs a max_distance of at least 2, got ")
           << *maxDistance;
  return success();
}

// Checks, in this order:
// - three dimensions each; keys and values have one type; same samples;
// - widths are multiples of `head_dim`; the number of heads is a multiple of
//   that of key/value heads;
// - the result has the type of the queries; `lse` is [b, s, heads];
// - `rate` is at least 0 and below 1;
// - the bias has two dimensions, at least four rows and a column per head; it
//   comes with a `max_distance` of at least 2, which is not there without it;
// - there is no bias beside a `softcap`.
LogicalResult AttentionOp::verify() {
  auto headDim = static_cast<int64_t>(getHeadDim());
  if (failed(checkAttentionInputs(*this, getQuery(), getKey(), getValue(),
                                  headDim)) ||
      failed(expectType(*this, "result", getResult(), getQuery().getType())) ||
      failed(checkLse(*this, getLse(), getQuery(), headDim)) ||
      failed(expectRate(*this, getRate())))
    return failure();
  return checkBias(*this, getBias(), getMaxDistance(), getSoftcap().has_value(),
                   getQuery(), headDim);
}

// Checks:
// - as for `mtp.attention`; the gradient has the type of the queries, and the
//   results have the types of queries, keys and values, and of the bias if
//   there is one.
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

// Checks, in this order:
// - three dimensions, the last a multiple of `head_dim`;
// - `rotary_dim` is even, positive and at most `head_dim`; `theta` is positive.
LogicalResult RopeOp::verify() {
  auto headDim = static_cast<int64_t>(getHeadDim());
  auto rotaryDim = static_cast<int64_t>(getRotaryDim());
  if (failed(expectRank(*this, "input", getInput(), 3)) ||
      failed(checkHeads(*this, "input", tensorOf(getInput()).getDimSize(2),
                        headDim)))
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
