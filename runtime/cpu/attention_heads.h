//===- attention_heads.h - Shapes and helpers of attention ------*- C++ -*-===//
//
// Queries and keys are processed in blocks, so that only the scores of one pair
// of blocks are in memory at a time (Dao et al. 2022). Within a task all
// numbers have type R, and rows are zero-padded to a multiple of kLanes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_ATTENTION_HEADS_H
#define MTPLAN_RUNTIME_CPU_ATTENTION_HEADS_H

#include <algorithm>
#include <cmath>

#include "runtime/cpu/dropout.h"
#include "runtime/cpu/families.h"
#include "runtime/cpu/tile_product.h"

namespace mtplan::runtime::cpu {

/// A block has kQueries queries or kKeys keys.
inline constexpr std::int64_t kQueries = 64, kKeys = 64;

inline constexpr std::int64_t kScores = kQueries * kKeys;

template <typename R> class AttentionHeads {
public:
  explicit AttentionHeads(const KernelSpec &spec)
      : width(spec.integer("head_dim", 1)),
        padded(static_cast<std::int64_t>(
            roundUp(static_cast<std::size_t>(width), kLanes))),
        batch(spec.inputs[0].shape[0]), queries(spec.inputs[0].shape[1]),
        heads(spec.inputs[0].shape[2] / width), keys(spec.inputs[1].shape[1]),
        keyHeads(spec.inputs[1].shape[2] / width),
        keyBlocks((keys + kKeys - 1) / kKeys),
        causal(spec.integer("causal", 0) != 0),
        scale(static_cast<R>(spec.number("scale", 1.0))),
        softcap(static_cast<R>(spec.number("softcap", 0.0))),
        rate(spec.number("rate", 0.0)), mask(spec.text("mask", "")),
        samples(pieceOf(spec.inputs[0], 0)),
        positions(pieceOf(spec.inputs[0], 1)),
        features(pieceOf(spec.inputs[0], 2)) {}

  std::int64_t keyHeadOf(std::int64_t head) const {
    return head / (heads / keyHeads);
  }

  /// Returns how many keys the query at local position `s` attends to.
  std::int64_t visible(std::int64_t s) const {
    return causal ? std::min(keys, positions.offset + s + 1) : keys;
  }

  R capped(R score) const { return softcap * std::tanh(score / softcap); }

  /// Returns the index of a query's first score in the dropout mask.
  std::int64_t maskRow(const Moment &moment, std::int64_t b, std::int64_t head,
                       std::int64_t s) const {
    const std::int64_t allHeads = features.global / width;
    const std::int64_t row =
        ((samples.offset + b) * allHeads + features.offset / width + head) *
            positions.global +
        positions.offset + s;
    const std::int64_t pitch = scorePitch(keys);
    return maskIndex(moment,
                     samples.global * allHeads * positions.global * pitch,
                     row * pitch);
  }

  /// Converts rows [first, first + count) of one head of a tensor
  /// [batch][rows][heads * width] to R, as [count][padded].
  void gather(ElementType type, const void *data, std::int64_t b,
              std::int64_t rows, std::int64_t ofHeads, std::int64_t head,
              std::int64_t first, std::int64_t count, R *to) const {
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t from =
          ((b * rows + first + r) * ofHeads + head) * width;
      widenInto(type, at(data, type, from), width, to + r * padded);
      std::fill(to + r * padded + width, to + (r + 1) * padded, R(0));
    }
  }
  /// Does the inverse of gather().
  void scatter(ElementType type, void *data, std::int64_t b, std::int64_t rows,
               std::int64_t ofHeads, std::int64_t head, std::int64_t first,
               std::int64_t count, const R *from) const {
    for (std::int64_t r = 0; r < count; ++r)
      narrowInto(
          type, from + r * padded, width,
          at(data, type, ((b * rows + first + r) * ofHeads + head) * width));
  }

  /// Transposes [keys][padded] into [keyBlocks][width][kKeys], zero-padded to
  /// whole blocks.
  void transpose(const R *from, R *to) const {
    for (std::int64_t first = 0; first < keys; first += kKeys) {
      const std::int64_t count = std::min(kKeys, keys - first);
      for (std::int64_t d = 0; d < width; ++d, to += kKeys) {
        for (std::int64_t k = 0; k < count; ++k)
          to[k] = from[(first + k) * padded + d];
        std::fill(to + count, to + kKeys, R(0));
      }
    }
  }

  /// Count the elements of a head's keys or values, padded to whole blocks, in
  /// the layouts of gather() and transpose().
  std::int64_t keyRoom() const { return keyBlocks * kKeys * padded; }
  std::int64_t transposedRoom() const { return keyBlocks * kKeys * width; }

  const std::int64_t width, padded, batch, queries, heads, keys, keyHeads,
      keyBlocks;
  const bool causal;
  const R scale, softcap; ///< softcap 0: none
  const double rate;
  const std::string mask;
  const Span samples, positions, features; ///< ranges of the query's shard
};

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_ATTENTION_HEADS_H
