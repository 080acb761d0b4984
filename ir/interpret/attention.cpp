//===- attention.cpp - Kernels of attention and rotary positions ----------===//

#include <algorithm>
#include <cmath>

#include "ir/interpret/kernel.h"
#include "ir/relative_position.h"

namespace mtplan::ir {

using runtime::maskIndex, runtime::maskValue, runtime::scoreIndex,
    runtime::scorePitch;

namespace {

/// What forward and backward share: shapes, the scores of one row, its mask.
template <typename Op> class Heads {
public:
  /// \param bias  the table's place among the operands
  Heads(Op op, const KernelCall &call, std::size_t bias)
      : table(op.getBias() ? call.operands[bias] : nullptr),
        maxDistance(static_cast<std::int64_t>(op.getMaxDistance().value_or(0))),
        query(*call.operands[0]), key(*call.operands[1]),
        value(*call.operands[2]), spans(call.operandSpans[0]),
        width(op.getHeadDim()), heads(query.shape[2] / width),
        keyHeads(key.shape[2] / width), keys(key.shape[1]),
        causal(op.getCausal()), scale(op.getScale().convertToDouble()),
        rate(op.getRate().convertToDouble()), moment(call.moment),
        stream(Stream::ofMask(call.moment, op.getMask())) {}

  template <typename Visit> void forEachRow(Visit &&visit) const {
    for (std::int64_t b = 0; b < query.shape[0]; ++b)
      for (std::int64_t head = 0; head < heads; ++head)
        for (std::int64_t s = 0; s < query.shape[1]; ++s)
          visit(b, head, s);
  }

  /// First element of a head's row of queries, and of keys or values.
  std::int64_t queryAt(std::int64_t b, std::int64_t head,
                       std::int64_t s) const {
    return ((b * query.shape[1] + s) * heads + head) * width;
  }
  std::int64_t keyAt(std::int64_t b, std::int64_t head, std::int64_t k) const {
    const std::int64_t shared = head / (heads / keyHeads);
    return ((b * keys + k) * keyHeads + shared) * width;
  }
  std::int64_t lseAt(std::int64_t b, std::int64_t head, std::int64_t s) const {
    return (b * query.shape[1] + s) * heads + head;
  }

  /// Keys that the query at local position `s` sees: the past, by global
  /// positions, as keys are whole.
  std::int64_t visible(std::int64_t s) const {
    return causal ? std::min(keys, spans[1].offset + s + 1) : keys;
  }

  double score(std::int64_t b, std::int64_t head, std::int64_t s,
               std::int64_t k) const {
    const double product =
        dot(&query.data[queryAt(b, head, s)], &key.data[keyAt(b, head, k)]);
    return scale * product + (table ? table->data[biasAt(head, s, k)] : 0.0);
  }

  /// Element of the bias; positions are global, as keys are whole.
  std::int64_t biasAt(std::int64_t head, std::int64_t s, std::int64_t k) const {
    return relativeBucket(k - (spans[1].offset + s), table->shape[0],
                          maxDistance, !causal) *
               heads +
           head;
  }

  double dot(const double *a, const double *b) const {
    double sum = 0.0;
    for (std::int64_t d = 0; d < width; ++d)
      sum += a[d] * b[d];
    return sum;
  }

  /// What dropout multiplies one probability by.
  double keep(std::int64_t b, std::int64_t head, std::int64_t s,
              std::int64_t k) const {
    const std::int64_t allHeads = spans[2].global / width;
    const std::int64_t row =
        ((spans[0].offset + b) * allHeads + spans[2].offset / width + head) *
            spans[1].global +
        spans[1].offset + s;
    const std::int64_t pitch = scorePitch(keys);
    return maskValue(
        stream, rate,
        maskIndex(moment, spans[0].global * allHeads * spans[1].global * pitch,
                  row * pitch + scoreIndex(k)));
  }

  const HostTensor *table; ///< of biases, or null
  const std::int64_t maxDistance;
  const HostTensor &query, &key, &value;
  const std::vector<Span> &spans; ///< of the queries
  const std::int64_t width, heads, keyHeads, keys;
  const bool causal;
  const double scale, rate;
  const Moment moment;
  const Stream stream;
};

void attention(AttentionOp op, KernelCall &call) {
  const Heads<AttentionOp> all(op, call, 3);
  HostTensor &result = call.results[0], &lse = call.results[1];
  all.forEachRow([&](std::int64_t b, std::int64_t head, std::int64_t s) {
    const std::int64_t visible = all.visible(s);
    std::vector<double> scores(visible);
    for (std::int64_t k = 0; k < visible; ++k)
      scores[k] = all.score(b, head, s, k);
    const double largest = *std::max_element(scores.begin(), scores.end());
    double total = 0.0;
    for (double score : scores)
      total += std::exp(score - largest);
    const double rowLse = largest + std::log(total);
    lse.data[all.lseAt(b, head, s)] = rowLse;
    double *out = &result.data[all.queryAt(b, head, s)];
    for (std::int64_t k = 0; k < visible; ++k) {
      const double weight =
          std::exp(scores[k] - rowLse) * all.keep(b, head, s, k);
      const double *value = &all.value.data[all.keyAt(b, head, k)];
      for (std::int64_t d = 0; d < all.width; ++d)
        out[d] += weight * value[d];
    }
  });
}

void attentionGrad(AttentionGradOp op, KernelCall &call) {
  const Heads<AttentionGradOp> all(op, call, 6);
  const HostTensor &output = *call.operands[3], &lse = *call.operands[4];
  const HostTensor &gradient = *call.operands[5];
  all.forEachRow([&](std::int64_t b, std::int64_t head, std::int64_t s) {
    const std::int64_t row = all.queryAt(b, head, s);
    const double *dOut = &gradient.data[row];
    // Sum of probability times its gradient, dropped out or not.
    const double projection = all.dot(dOut, &output.data[row]);
    for (std::int64_t k = 0; k < all.visible(s); ++k) {
      const std::int64_t column = all.keyAt(b, head, k);
      const double probability =
          std::exp(all.score(b, head, s, k) - lse.data[all.lseAt(b, head, s)]);
      const double keep = all.keep(b, head, s, k);
      const double dProbability = all.dot(dOut, &all.value.data[column]) * keep;
      const double dBias = probability * (dProbability - projection);
      const double dScore = all.scale * dBias;
      if (all.table)
        call.results[3].data[all.biasAt(head, s, k)] += dBias;
      for (std::int64_t d = 0; d < all.width; ++d) {
        call.results[0].data[row + d] += dScore * all.key.data[column + d];
        call.results[1].data[column + d] += dScore * all.query.data[row + d];
        call.results[2].data[column + d] += probability * keep * dOut[d];
      }
    }
  });
}

void rope(RopeOp op, KernelCall &call) {
  const HostTensor &input = *call.operands[0];
  std::vector<double> &out = call.results[0].data;
  out = input.data;
  const std::int64_t rotary = op.getRotaryDim(), half = rotary / 2;
  const double theta = op.getTheta().convertToDouble();
  const std::int64_t width = op.getHeadDim();
  const std::int64_t heads = input.shape[2] / width;
  const std::int64_t positions = input.shape[1];
  for (std::int64_t row = 0; row < input.shape[0] * positions * heads; ++row) {
    const std::int64_t position =
        call.operandSpans[0][1].offset + row / heads % positions;
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) /
                                                   static_cast<double>(rotary));
      double angle = static_cast<double>(position) * frequency;
      if (op.getInverse())
        angle = -angle;
      const std::int64_t x = row * width + (op.getInterleaved() ? 2 * i : i);
      const std::int64_t y = x + (op.getInterleaved() ? 1 : half);
      out[x] =
          input.data[x] * std::cos(angle) - input.data[y] * std::sin(angle);
      out[y] =
          input.data[x] * std::sin(angle) + input.data[y] * std::cos(angle);
    }
  }
}

} // namespace

void addAttentionKernels(KernelTable &table) {
  table.add<AttentionOp>(attention);
  table.add<AttentionGradOp>(attentionGrad);
  table.add<RopeOp>(rope);
}

} // namespace mtplan::ir
