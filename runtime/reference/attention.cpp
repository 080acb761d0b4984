//===- attention.cpp - Attention and rotary positions, plainly ------------===//

#include <algorithm>
#include <cmath>

#include "runtime/backend/relative_position.h"
#include "runtime/reference/reference.h"

namespace mtplan::runtime::reference {
namespace {

/// What forward and backward share: shapes, the scores of one row, its mask.
class Heads {
public:
  /// \param bias  the table's place among the operands
  Heads(const Call &call, std::size_t bias)
      : table(call.in.size() > bias ? &call.in[bias] : nullptr),
        tableRows(table ? call.inShape(bias)[0] : 0),
        maxDistance(call.spec.integer("max_distance", 0)), query(call.in[0]),
        key(call.in[1]), value(call.in[2]), samples(call.inPiece(0, 0)),
        positions(call.inPiece(0, 1)), features(call.inPiece(0, 2)),
        width(call.spec.integer("head_dim", 1)), batch(call.inShape(0)[0]),
        queries(call.inShape(0)[1]), heads(call.inShape(0)[2] / width),
        keyHeads(call.inShape(1)[2] / width), keys(call.inShape(1)[1]),
        causal(call.spec.integer("causal", 0) != 0),
        scale(call.spec.number("scale", 1.0)),
        rate(rateAt(call.moment, call.spec.number("rate", 0.0))),
        moment(call.moment),
        stream(Stream::ofMask(call.moment, call.spec.text("mask", ""))) {}

  template <typename Visit> void forEachRow(Visit &&visit) const {
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t s = 0; s < queries; ++s)
        visit(head, s);
  }

  /// First element of a head's row of queries, and of keys or values.
  std::int64_t queryAt(std::int64_t b, std::int64_t head,
                       std::int64_t s) const {
    return ((b * queries + s) * heads + head) * width;
  }
  std::int64_t keyAt(std::int64_t b, std::int64_t head, std::int64_t k) const {
    const std::int64_t shared = head / (heads / keyHeads);
    return ((b * keys + k) * keyHeads + shared) * width;
  }
  std::int64_t lseAt(std::int64_t b, std::int64_t head, std::int64_t s) const {
    return (b * queries + s) * heads + head;
  }

  /// Keys that the query at local position `s` sees: the past, by global
  /// positions, as keys are whole.
  std::int64_t visible(std::int64_t s) const {
    return causal ? std::min(keys, positions.offset + s + 1) : keys;
  }

  double score(std::int64_t b, std::int64_t head, std::int64_t s,
               std::int64_t k) const {
    const double product =
        dot(&query[queryAt(b, head, s)], &key[keyAt(b, head, k)]);
    return scale * product + (table ? (*table)[biasAt(head, s, k)] : 0.0);
  }

  /// Element of the bias; positions are global, as keys are whole.
  std::int64_t biasAt(std::int64_t head, std::int64_t s, std::int64_t k) const {
    return relativeBucket(k - (positions.offset + s), tableRows, maxDistance,
                          !causal) *
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
    const std::int64_t allHeads = features.global / width;
    const std::int64_t row =
        ((samples.offset + b) * allHeads + features.offset / width + head) *
            positions.global +
        positions.offset + s;
    const std::int64_t pitch = scorePitch(keys);
    return maskValue(
        stream, rate,
        maskIndex(moment, samples.global * allHeads * positions.global * pitch,
                  row * pitch + scoreIndex(k)));
  }

  const Doubles *table; ///< of biases, or null
  const std::int64_t tableRows, maxDistance;
  const Doubles &query, &key, &value;
  const Span samples, positions, features; ///< of the queries
  const std::int64_t width, batch, queries, heads, keyHeads, keys;
  const bool causal;
  const double scale, rate;
  const Moment moment;
  const Stream stream;
};

void attendRow(const Heads &all, Call &call, std::int64_t b, std::int64_t head,
               std::int64_t s) {
  const std::int64_t visible = all.visible(s);
  Doubles scores(static_cast<std::size_t>(visible));
  for (std::int64_t k = 0; k < visible; ++k)
    scores[k] = all.score(b, head, s, k);
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0.0;
  for (double score : scores)
    total += std::exp(score - largest);
  const double lse = largest + std::log(total);
  call.out[1][all.lseAt(b, head, s)] = lse;
  double *out = &call.out[0][all.queryAt(b, head, s)];
  for (std::int64_t k = 0; k < visible; ++k) {
    const double weight = std::exp(scores[k] - lse) * all.keep(b, head, s, k);
    const double *value = &all.value[all.keyAt(b, head, k)];
    for (std::int64_t d = 0; d < all.width; ++d)
      out[d] += weight * value[d];
  }
}

void attention(Call &call) {
  const Heads all(call, 3);
  for (std::int64_t b = 0; b < all.batch; ++b)
    all.forEachRow([&](std::int64_t head, std::int64_t s) {
      attendRow(all, call, b, head, s);
    });
}

/// \param bias  where the bias's gradient of this sample goes, or null
void attendRowGrad(const Heads &all, Call &call, std::int64_t b,
                   std::int64_t head, std::int64_t s, double *bias) {
  const std::int64_t row = all.queryAt(b, head, s);
  const double *dOut = &call.in[5][row];
  // Sum of probability times its gradient, dropped out or not.
  const double projection = all.dot(dOut, &call.in[3][row]);
  const double lse = call.in[4][all.lseAt(b, head, s)];
  for (std::int64_t k = 0; k < all.visible(s); ++k) {
    const std::int64_t column = all.keyAt(b, head, k);
    const double probability = std::exp(all.score(b, head, s, k) - lse);
    const double keep = all.keep(b, head, s, k);
    const double dProbability = all.dot(dOut, &all.value[column]) * keep;
    const double dBias = probability * (dProbability - projection);
    const double dScore = all.scale * dBias;
    if (bias)
      bias[all.biasAt(head, s, k)] += dBias;
    for (std::int64_t d = 0; d < all.width; ++d) {
      call.out[0][row + d] += dScore * all.key[column + d];
      call.out[1][column + d] += dScore * all.query[row + d];
      call.out[2][column + d] += probability * keep * dOut[d];
    }
  }
}

void attentionGrad(Call &call) {
  const Heads all(call, 6);
  Doubles bias(all.table ? all.table->size() : 0, 0.0);
  for (std::int64_t b = 0; b < all.batch; ++b) {
    all.forEachRow([&](std::int64_t head, std::int64_t s) {
      attendRowGrad(all, call, b, head, s, all.table ? bias.data() : nullptr);
    });
    if (all.table)
      call.addSample(3, bias);
  }
}

void rope(Call &call) {
  const Doubles &input = call.in[0];
  call.out[0] = input;
  const std::int64_t rotary = call.spec.integer("rotary_dim", 0);
  const std::int64_t width = call.spec.integer("head_dim", 1);
  const double theta = call.spec.number("theta", 1e4);
  const bool interleaved = call.spec.integer("interleaved", 0) != 0;
  const bool inverse = call.spec.integer("inverse", 0) != 0;
  const std::int64_t half = rotary / 2;
  const std::int64_t positions = call.inShape(0)[1];
  const std::int64_t heads = call.inShape(0)[2] / width;
  const std::int64_t rows = call.inShape(0)[0] * positions * heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t position =
        call.inPiece(0, 1).offset + row / heads % positions;
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) /
                                                   static_cast<double>(rotary));
      const double angle =
          static_cast<double>(position) * (inverse ? -frequency : frequency);
      const std::int64_t x = row * width + (interleaved ? 2 * i : i);
      const std::int64_t y = x + (interleaved ? 1 : half);
      call.out[0][x] = input[x] * std::cos(angle) - input[y] * std::sin(angle);
      call.out[0][y] = input[x] * std::sin(angle) + input[y] * std::cos(angle);
    }
  }
}

} // namespace

void addAttention(Table &table) {
  table.functions["attention"] = attention;
  table.functions["attention_grad"] = attentionGrad;
  table.functions["rope"] = rope;
}

} // namespace mtplan::runtime::reference
