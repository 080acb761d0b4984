//===- attention.cpp - Attention and its gradients, block by block --------===//
//
// A task of the forward kernel is one head of one sample. The maxima and sums
// of its softmax are updated block by block: when a larger score appears, the
// previous sums are scaled down (Milakov and Gimelshein 2018).
//
//===----------------------------------------------------------------------===//

#include <limits>

#include "runtime/cpu/attention_heads.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Replaces the first `count` scores of a block's row by their exponentials,
/// and the other scores by zero. Updates the row's maximum and sum. Returns the
/// factor by which the caller must multiply the row's previous results.
template <typename R>
MTPLAN_INLINE R exponentiateAny(R *row, std::int64_t count, R &largest,
                                R &total) {
  constexpr R kNone = -std::numeric_limits<R>::infinity();
  R top = largest;
#pragma omp simd reduction(max : top)
  for (std::int64_t k = 0; k < kKeys; ++k) {
    row[k] = k < count ? row[k] : kNone;
    top = row[k] > top ? row[k] : top;
  }
  R sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t k = 0; k < kKeys; ++k) {
    const R value = expOf(row[k] - top);
    row[k] = value;
    sum += value;
  }
  const R correction = expOf(largest - top);
  largest = top;
  total = total * correction + sum;
  return correction;
}
MTPLAN_CLONES float exponentiate(float *row, std::int64_t count, float &largest,
                                 float &total) {
  return exponentiateAny(row, count, largest, total);
}
MTPLAN_CLONES double exponentiate(double *row, std::int64_t count,
                                  double &largest, double &total) {
  return exponentiateAny(row, count, largest, total);
}

template <typename R>
MTPLAN_INLINE void scaleAny(R *row, std::int64_t count, R factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    row[i] *= factor;
}
MTPLAN_CLONES void scaleRow(float *row, std::int64_t count, float factor) {
  scaleAny(row, count, factor);
}
MTPLAN_CLONES void scaleRow(double *row, std::int64_t count, double factor) {
  scaleAny(row, count, factor);
}

namespace {

template <typename R> class Attention : public Kernel {
public:
  Attention(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), all(theSpec) {
    context->reserve(
        0, static_cast<std::size_t>(2 * all.keyRoom() + all.transposedRoom() +
                                    2 * kQueries * all.padded + kScores +
                                    4 * kQueries + kKeys) *
               sizeof(R));
  }

  void run(const Invocation &call) override {
    const Mask mask(Stream::ofMask(call.moment(), all.mask),
                    rateAt(call.moment(), all.rate));
    context->forEach(all.batch * all.heads, [&](std::int64_t task, int thread) {
      runHead(call, mask, task / all.heads, task % all.heads,
              context->ofThread<R>(thread));
    });
  }

  double flops() const override {
    return 4.0 *
           static_cast<double>(all.batch * all.heads * all.queries * all.keys *
                               all.width) /
           (all.causal && all.queries == all.keys ? 2.0 : 1.0);
  }

private:
  void runHead(const Invocation &call, const Mask &mask, std::int64_t b,
               std::int64_t head, R *memory) const {
    R *values = memory, *keys = values + all.keyRoom();
    R *transposed = keys + all.keyRoom();
    R *rest = transposed + all.transposedRoom();
    const std::int64_t shared = all.keyHeadOf(head);
    all.gather(spec.inputs[1].type, call.inputs[1], b, all.keys, all.keyHeads,
               shared, 0, all.keys, keys);
    all.transpose(keys, transposed);
    all.gather(spec.inputs[2].type, call.inputs[2], b, all.keys, all.keyHeads,
               shared, 0, all.keys, values);
    std::fill(values + all.keys * all.padded, values + all.keyRoom(), R(0));
    for (std::int64_t first = 0; first < all.queries; first += kQueries)
      runBlock(call, mask, b, head, first,
               std::min(kQueries, all.queries - first), values, transposed,
               rest);
  }

  void runBlock(const Invocation &call, const Mask &mask, std::int64_t b,
                std::int64_t head, std::int64_t first, std::int64_t rows,
                const R *values, const R *transposed, R *rest) const {
    R *query = rest, *result = query + kQueries * all.padded;
    R *scores = result + kQueries * all.padded, *largest = scores + kScores;
    R *total = largest + kQueries, *factors = total + kQueries;
    all.gather(spec.inputs[0].type, call.inputs[0], b, all.queries, all.heads,
               head, first, rows, query);
    scaleRow(query, rows * all.padded, all.scale);
    std::fill_n(result, rows * all.padded, R(0));
    std::fill_n(largest, rows, -std::numeric_limits<R>::infinity());
    std::fill_n(total, rows, R(0));
    const std::int64_t seen = all.visible(first + rows - 1);
    for (std::int64_t from = 0; from < seen; from += kKeys) {
      std::fill_n(scores, rows * kKeys, R(0));
      multiplyAdd(rows, kKeys, all.width, Left<R>{query, all.padded, 1},
                  transposed + from * all.width, kKeys, scores, kKeys);
      for (std::int64_t r = 0; r < rows; ++r) {
        R *row = scores + r * kKeys;
        const std::int64_t count =
            std::clamp<std::int64_t>(all.visible(first + r) - from, 0, kKeys);
        if (count == 0) {
          std::fill_n(row, kKeys, R(0));
          continue;
        }
        if (all.softcap > R(0))
          std::transform(row, row + count, row,
                         [&](R score) { return all.capped(score); });
        const R correction = exponentiate(row, count, largest[r], total[r]);
        if (correction != R(1))
          scaleRow(result + r * all.padded, all.padded, correction);
        if (mask.drops()) {
          mask.fillScores(all.maskRow(call.moment(), b, head, first + r) + from,
                          count, factors);
          for (std::int64_t k = 0; k < count; ++k)
            row[k] *= factors[k];
        }
      }
      multiplyAdd(rows, all.padded, kKeys, Left<R>{scores, kKeys, 1},
                  values + from * all.padded, all.padded, result, all.padded);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      scaleRow(result + r * all.padded, all.padded, R(1) / total[r]);
      writeElement(spec.outputs[1].type, call.outputs[1],
                   (b * all.queries + first + r) * all.heads + head,
                   static_cast<double>(largest[r] + std::log(total[r])));
    }
    all.scatter(spec.outputs[0].type, call.outputs[0], b, all.queries,
                all.heads, head, first, rows, result);
  }

  const SharedContext context;
  const KernelSpec spec;
  const AttentionHeads<R> all;
};

} // namespace

MadeKernel makeAttention(const KernelSpec &spec, const SharedContext &context) {
  if (spec.inputs.size() > 3) // the reference kernel adds biases
    return nullptr;
  return makeOf<Attention>(spec, context);
}

//===----------------------------------------------------------------------===//
// Gradients
//
// A task is one key/value head of one sample, with all query heads that share
// this head, so that no two tasks add to the same gradient.
//===----------------------------------------------------------------------===//

/// Computes the probabilities and the score gradients of one row of a block.
/// \param scores  products of query and key; become probabilities after dropout
/// \param slopes  gradients of the probabilities; become gradients of the
/// products
template <typename R>
MTPLAN_INLINE void slopesAny(R *scores, R *slopes, const R *keep,
                             std::int64_t count, R scale, R lse, R projection) {
#pragma omp simd
  for (std::int64_t k = 0; k < kKeys; ++k) {
    const R probability = k < count ? expOf(scale * scores[k] - lse) : R(0);
    scores[k] = probability * keep[k];
    slopes[k] = scale * probability * (slopes[k] * keep[k] - projection);
  }
}
MTPLAN_CLONES void takeSlopes(float *scores, float *slopes, const float *keep,
                              std::int64_t count, float scale, float lse,
                              float projection) {
  slopesAny(scores, slopes, keep, count, scale, lse, projection);
}
MTPLAN_CLONES void takeSlopes(double *scores, double *slopes,
                              const double *keep, std::int64_t count,
                              double scale, double lse, double projection) {
  slopesAny(scores, slopes, keep, count, scale, lse, projection);
}

namespace {

template <typename R> class AttentionGrad : public Kernel {
public:
  AttentionGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), all(theSpec) {
    context->reserve(0, static_cast<std::size_t>(
                            4 * all.keyRoom() + 2 * all.transposedRoom() +
                            4 * kQueries * all.padded + 2 * kScores +
                            2 * kQueries + 2 * kKeys) *
                            sizeof(R));
  }

  void run(const Invocation &call) override {
    const Mask mask(Stream::ofMask(call.moment(), all.mask),
                    rateAt(call.moment(), all.rate));
    context->forEach(
        all.batch * all.keyHeads, [&](std::int64_t task, int thread) {
          runShared(call, mask, task / all.keyHeads, task % all.keyHeads,
                    context->ofThread<R>(thread));
        });
  }

  double flops() const override {
    return 10.0 *
           static_cast<double>(all.batch * all.heads * all.queries * all.keys *
                               all.width) /
           (all.causal && all.queries == all.keys ? 2.0 : 1.0);
  }

private:
  struct Room {
    R *keys, *values, *keyGradient, *valueGradient; ///< [keys][padded]
    R *keysAcross, *valuesAcross;                   ///< transposed
    R *query, *above, *output, *queryGradient;      ///< [kQueries][padded]
    R *scores, *slopes, *lse, *projection, *keep, *bend;

    Room(R *memory, const AttentionHeads<R> &all) {
      const auto take = [&](std::int64_t count) {
        R *taken = memory;
        memory += count;
        return taken;
      };
      for (R **rows : {&keys, &values, &keyGradient, &valueGradient})
        *rows = take(all.keyRoom());
      keysAcross = take(all.transposedRoom());
      valuesAcross = take(all.transposedRoom());
      for (R **rows : {&query, &above, &output, &queryGradient})
        *rows = take(kQueries * all.padded);
      scores = take(kScores);
      slopes = take(kScores);
      lse = take(kQueries);
      projection = take(kQueries);
      keep = take(kKeys);
      bend = take(kKeys);
    }
  };

  void runShared(const Invocation &call, const Mask &mask, std::int64_t b,
                 std::int64_t shared, R *memory) const {
    const Room room(memory, all);
    for (int side : {1, 2}) {
      R *rows = side == 1 ? room.keys : room.values;
      all.gather(spec.inputs[side].type, call.inputs[side], b, all.keys,
                 all.keyHeads, shared, 0, all.keys, rows);
      std::fill(rows + all.keys * all.padded, rows + all.keyRoom(), R(0));
      all.transpose(rows, side == 1 ? room.keysAcross : room.valuesAcross);
    }
    std::fill_n(room.keyGradient, all.keyRoom(), R(0));
    std::fill_n(room.valueGradient, all.keyRoom(), R(0));
    const std::int64_t group = all.heads / all.keyHeads;
    for (std::int64_t head = shared * group; head < (shared + 1) * group;
         ++head)
      for (std::int64_t first = 0; first < all.queries; first += kQueries)
        runBlock(call, mask, b, head, first,
                 std::min(kQueries, all.queries - first), room);
    all.scatter(spec.outputs[1].type, call.outputs[1], b, all.keys,
                all.keyHeads, shared, 0, all.keys, room.keyGradient);
    all.scatter(spec.outputs[2].type, call.outputs[2], b, all.keys,
                all.keyHeads, shared, 0, all.keys, room.valueGradient);
  }

  void runBlock(const Invocation &call, const Mask &mask, std::int64_t b,
                std::int64_t head, std::int64_t first, std::int64_t rows,
                const Room &room) const {
    const auto take = [&](std::size_t operand, R *to) {
      all.gather(spec.inputs[operand].type, call.inputs[operand], b,
                 all.queries, all.heads, head, first, rows, to);
    };
    take(0, room.query);
    take(3, room.output);
    take(5, room.above);
    std::fill_n(room.queryGradient, rows * all.padded, R(0));
    std::fill_n(room.keep, kKeys, R(1));
    for (std::int64_t r = 0; r < rows; ++r) {
      R sum = 0;
      for (std::int64_t d = 0; d < all.width; ++d)
        sum += room.above[r * all.padded + d] * room.output[r * all.padded + d];
      room.projection[r] = sum;
      room.lse[r] = static_cast<R>(
          readElement(spec.inputs[4].type, call.inputs[4],
                      (b * all.queries + first + r) * all.heads + head));
    }
    const std::int64_t seen = all.visible(first + rows - 1);
    for (std::int64_t from = 0; from < seen; from += kKeys)
      runPair(call, mask, b, head, first, rows, from, room);
    all.scatter(spec.outputs[0].type, call.outputs[0], b, all.queries,
                all.heads, head, first, rows, room.queryGradient);
  }

  /// Replaces each product by its capped score, divided by the scale, because
  /// takeSlopes() multiplies by the scale. Writes the soft cap's derivative to
  /// `bend`.
  void capProducts(R *products, std::int64_t count, R *bend) const {
    for (std::int64_t k = 0; k < count; ++k) {
      const R score = all.capped(all.scale * products[k]);
      const R share = score / all.softcap;
      products[k] = score / all.scale;
      bend[k] = R(1) - share * share;
    }
  }

  /// Adds the gradient terms of a block of queries and a block of keys.
  void runPair(const Invocation &call, const Mask &mask, std::int64_t b,
               std::int64_t head, std::int64_t first, std::int64_t rows,
               std::int64_t from, const Room &room) const {
    const std::int64_t wide = all.padded;
    std::fill_n(room.scores, rows * kKeys, R(0));
    std::fill_n(room.slopes, rows * kKeys, R(0));
    multiplyAdd(rows, kKeys, all.width, Left<R>{room.query, wide, 1},
                room.keysAcross + from * all.width, kKeys, room.scores, kKeys);
    multiplyAdd(rows, kKeys, all.width, Left<R>{room.above, wide, 1},
                room.valuesAcross + from * all.width, kKeys, room.slopes,
                kKeys);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t count =
          std::clamp<std::int64_t>(all.visible(first + r) - from, 0, kKeys);
      if (all.rate > 0.0 && count > 0)
        mask.fillScores(all.maskRow(call.moment(), b, head, first + r) + from,
                        count, room.keep);
      R *scores = room.scores + r * kKeys, *slopes = room.slopes + r * kKeys;
      if (all.softcap > R(0))
        capProducts(scores, count, room.bend);
      takeSlopes(scores, slopes, room.keep, count, all.scale, room.lse[r],
                 room.projection[r]);
      if (all.softcap > R(0))
        for (std::int64_t k = 0; k < count; ++k)
          slopes[k] *= room.bend[k];
    }
    multiplyAdd(kKeys, wide, rows, Left<R>{room.scores, 1, kKeys}, room.above,
                wide, room.valueGradient + from * wide, wide);
    multiplyAdd(kKeys, wide, rows, Left<R>{room.slopes, 1, kKeys}, room.query,
                wide, room.keyGradient + from * wide, wide);
    multiplyAdd(rows, wide, kKeys, Left<R>{room.slopes, kKeys, 1},
                room.keys + from * wide, wide, room.queryGradient, wide);
  }

  const SharedContext context;
  const KernelSpec spec;
  const AttentionHeads<R> all;
};

} // namespace

MadeKernel makeAttentionGrad(const KernelSpec &spec,
                             const SharedContext &context) {
  if (spec.inputs.size() > 6) // the reference kernel adds biases
    return nullptr;
  return makeOf<AttentionGrad>(spec, context);
}

} // namespace mtplan::runtime::cpu
