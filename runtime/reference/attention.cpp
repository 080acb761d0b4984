//===- attention.cpp - Reference kernels of attention ---------------------===//

#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

class Heads {
public:
  /// \param bias  index of the bias table among the operands; the call may
  ///   lack this operand
  Heads(const Call &call, std::size_t bias)
      : table(call.in.size() > bias ? call.in[bias]
                                    : std::span<const double>()),
        tableRows(table.empty() ? 0 : call.inShape(bias)[0]),
        maxDistance(call.attributes.integer("max_distance", 0)),
        query(call.in[0]), key(call.in[1]), value(call.in[2]),
        samples(call.inPiece(0, 0)), positions(call.inPiece(0, 1)),
        features(call.inPiece(0, 2)),
        width(call.attributes.integer("head_dim", 1)),
        batch(call.inShape(0)[0]), queries(call.inShape(0)[1]),
        heads(call.inShape(0)[2] / width), keyHeads(call.inShape(1)[2] / width),
        keys(call.inShape(1)[1]), causal(call.attributes.flag("causal")),
        scale(call.attributes.number("scale", 1.0)),
        softcap(call.attributes.number("softcap", 0.0)),
        rate(rateAt(call.moment, call.attributes.number("rate", 0.0))),
        moment(call.moment),
        stream(Stream::ofMask(call.moment, call.attributes.text("mask"))) {}

  template <typename Visit> void forEachRow(Visit &&visit) const {
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t s = 0; s < queries; ++s)
        visit(head, s);
  }

  std::int64_t queryAt(std::int64_t b, std::int64_t head,
                       std::int64_t s) const {
    return ((b * queries + s) * heads + head) * width;
  }
  /// Returns the index of the first element of the key or value `k` that a
  /// query head uses. Consecutive query heads share a key head.
  std::int64_t keyAt(std::int64_t b, std::int64_t head, std::int64_t k) const {
    const std::int64_t shared = head / (heads / keyHeads);
    return ((b * keys + k) * keyHeads + shared) * width;
  }
  std::int64_t lseAt(std::int64_t b, std::int64_t head, std::int64_t s) const {
    return (b * queries + s) * heads + head;
  }

  /// Returns how many keys the query at local position `s` attends to. Every
  /// rank holds all keys, so the causal mask compares global positions.
  std::int64_t visible(std::int64_t s) const {
    return causal ? std::min(keys, positions.offset + s + 1) : keys;
  }

  double score(std::int64_t b, std::int64_t head, std::int64_t s,
               std::int64_t k) const {
    const double scaled =
        scale * dot(&query[queryAt(b, head, s)], &key[keyAt(b, head, k)]);
    const double capped =
        softcap > 0.0 ? softcap * std::tanh(scaled / softcap) : scaled;
    return capped + (table.empty() ? 0.0 : table[biasAt(head, s, k)]);
  }

  /// Returns the derivative of a score with respect to the scaled product. The
  /// formula ignores the bias, because scores with a soft cap have no bias.
  double slopeAt(double score) const {
    const double share = softcap > 0.0 ? score / softcap : 0.0;
    return 1.0 - share * share;
  }

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

  /// Returns the number by which dropout multiplies a probability: 0 if the
  /// probability is dropped.
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

  const std::span<const double> table; ///< the bias table, or empty
  const std::int64_t tableRows, maxDistance;
  const std::span<const double> query, key, value;
  const Span samples, positions, features; ///< ranges of the query's shard
  const std::int64_t width, batch, queries, heads, keyHeads, keys;
  const bool causal;
  const double scale, softcap, rate;
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

/// Adds the gradients that one query of a head contributes.
/// \param bias  receives this sample's gradient of the bias table; may be null
void attendRowGrad(const Heads &all, Call &call, std::int64_t b,
                   std::int64_t head, std::int64_t s, double *bias) {
  const std::int64_t row = all.queryAt(b, head, s);
  const double *dOut = &call.in[5][row];
  // With or without dropout, this product equals the sum over all keys of
  // probability * gradient.
  const double projection = all.dot(dOut, &call.in[3][row]);
  const double lse = call.in[4][all.lseAt(b, head, s)];
  for (std::int64_t k = 0; k < all.visible(s); ++k) {
    const std::int64_t column = all.keyAt(b, head, k);
    const double score = all.score(b, head, s, k);
    const double probability = std::exp(score - lse);
    const double keep = all.keep(b, head, s, k);
    const double dProbability = all.dot(dOut, &all.value[column]) * keep;
    const double dBias = probability * (dProbability - projection);
    const double dScore = all.scale * all.slopeAt(score) * dBias;
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
  Doubles bias(all.table.size(), 0.0);
  for (std::int64_t b = 0; b < all.batch; ++b) {
    all.forEachRow([&](std::int64_t head, std::int64_t s) {
      attendRowGrad(all, call, b, head, s,
                    all.table.empty() ? nullptr : bias.data());
    });
    if (!all.table.empty())
      call.addSample(3, bias);
  }
}

} // namespace

void addAttention(KernelTable &table) {
  table["attention"] = attention;
  table["attention_grad"] = attentionGrad;
}

} // namespace mtplan::runtime::reference
