//===- attention.cuh - Attention with an online softmax ---------*- C++ -*-===//
//
// There are two kernels: one on tensor cores for 16-bit tensors, and a general
// kernel. The kernel on tensor cores is FlashAttention-2 (Dao 2023): a block
// processes 128 queries (64 for heads of 65 to 96 features) and iterates over
// tiles of keys. Sums stay in registers. Probabilities are rounded to 16 bits
// only where they weight the values. The values of a tile are copied to shared
// memory while its scores are computed, and the next keys are copied while the
// values are added. A block uses 36 KiB of shared memory for heads of up to 64
// features (with tiles of 64 keys), 26 KiB for up to 96 features, and 51 KiB
// for up to 128 features (both with tiles of 32 keys).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_CUH

#include "runtime/cuda/device/core_masks.cuh"

namespace mtplan::runtime::cuda {

/// Sets the tile sizes of a block for heads of up to Width features.
template <int Width> struct AttendShape {
  /// Sets the number of strips of 16 rows per warp. For heads of 65 to 96
  /// features, one strip leaves enough registers for four blocks per
  /// multiprocessor; two strips would permit only two blocks.
  static constexpr int kStrips = Width == 96 ? 1 : 2;
  static constexpr int kQueries = kCoreWarps * kStrips * kStrip;
  static constexpr int kKeys = Width <= 64 ? 64 : 32;
  static constexpr unsigned kShared = tileBytes<Width>(kQueries + 2 * kKeys);
};

/// Computes the online softmax of the rows whose elements a lane holds.
/// Probabilities are relative to a reference score of the row. When a
/// probability would exceed 2^kSlack, the reference is raised to the largest
/// score, and earlier sums are rescaled, as in FlashAttention-4. Few tiles need
/// a rescaling, and 16-bit numbers can represent 2^kSlack.
template <int Strips> struct RunningRows {
  static constexpr float kSlack = 8.0F;

  float largest[Strips][2], totals[Strips][2];

  __device__ RunningRows() {
#pragma unroll
    for (int s = 0; s < Strips; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[s][half] = -INFINITY;
        totals[s][half] = 0.0F;
      }
  }

  /// Replaces a tile's scores by unnormalized probabilities, and rescales
  /// earlier sums if necessary.
  /// \param scale  the scale of scores times log2(e), because exp(x) = 2^(x
  /// log2(e))
  template <int Keys, int Width>
  __device__ void take(CoreSums<Strips, Keys> &scores,
                       CoreSums<Strips, Width> &sums, float scale) {
    float tops[Strips][2];
    bool grown = false;
#pragma unroll
    for (int s = 0; s < Strips; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float &top = tops[s][half];
        top = scores[s][0][half * 2];
#pragma unroll
        for (int n = 0; n < Keys / 8; ++n)
          top = fmaxf(
              top, fmaxf(scores[s][n][half * 2], scores[s][n][half * 2 + 1]));
        grown = grown || (top - largest[s][half]) * scale > kSlack;
      }
    if (__any_sync(0xffffffffU, grown))
      grow<Width>(tops, sums, scale);
#pragma unroll
    for (int s = 0; s < Strips; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float offset = largest[s][half] * scale;
        float total = 0.0F;
#pragma unroll
        for (int n = 0; n < Keys / 8; ++n)
#pragma unroll
          for (int e = half * 2; e < half * 2 + 2; ++e) {
            scores[s][n][e] = powerOfTwo(scores[s][n][e] * scale - offset);
            total += scores[s][n][e];
          }
        totals[s][half] += total;
      }
  }

private:
  /// Raises the reference of each row whose largest score exceeds the reference
  /// by more than kSlack, and rescales the sums of the row.
  /// \param tops  the largest score of each row on this lane
  template <int Width>
  __device__ void grow(const float (&tops)[Strips][2],
                       CoreSums<Strips, Width> &sums, float scale) {
#pragma unroll
    for (int s = 0; s < Strips; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = tops[s][half];
        top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, 2));
        const float power = (largest[s][half] - top) * scale;
        const bool grown = power < -kSlack;
        const float factor = grown ? powerOfTwo(power) : 1.0F;
        largest[s][half] = grown ? top : largest[s][half];
        totals[s][half] *= factor;
#pragma unroll
        for (int n = 0; n < Width / 8; ++n) {
          sums[s][n][half * 2] *= factor;
          sums[s][n][half * 2 + 1] *= factor;
        }
      }
  }
};

/// Computes attention on tensor cores. A block processes a tile of queries of
/// one head and sample. The last tiles of a head are scheduled first, because
/// with a causal mask they attend to the most keys.
template <typename T, int Width, bool Drops>
__global__ void __launch_bounds__(kCoreThreads)
    attendOnCores(const T *query, const T *key, const T *value, Heads all,
                  Masks masks, T *to, Result kept) {
  using Shape = AttendShape<Width>;
  constexpr int kStrips = Shape::kStrips, kKeys = Shape::kKeys;
  T *const queries = static_cast<T *>(launchedMemory());
  T *const keys = queries + Shape::kQueries * kPitch<Width>;
  T *const values = keys + kKeys * kPitch<Width>;
  const CoreBlock block(blockIdx.x, all.queries, Shape::kQueries, all.heads);
  const int first = block.lastFirst(), head = block.head,
            row = warpOfBlock() * kStrips * kStrip, lane = laneOfWarp(),
            width = static_cast<int>(all.width),
            left = static_cast<int>(all.queries) - first;
  const CausalMask causal(all);
  const int end = causal.ofTile(first, Shape::kQueries, left),
            seenByWarp = causal.of(first + row + kStrips * kStrip - 1);
  const float scale = static_cast<float>(all.scale * kLog2E);

  const std::int64_t keysAt = all.keyAt(block.sample, head / all.ofHead(), 0);
  const auto begin = [&](T *tile, const T *from, int k) {
    const int stride = static_cast<int>(all.keyHeads * all.width);
    beginRows<kKeys, Width>(tile, from + keysAt + std::int64_t{k} * stride,
                            stride, causal.keys - k, width);
  };
  const std::int64_t at = all.queryAt(block.sample, head, first);
  const int stride = static_cast<int>(all.heads * all.width);
  beginRows<Shape::kQueries, Width>(queries, query + at, stride, left, width);
  begin(keys, key, 0);
  CoreSums<kStrips, Width> sums = {};
  RunningRows<kStrips> rows;
  const CoreMaskOf<Drops> mask(masks, all, block.sample, head, first + row);
  for (int k = 0; k < end; k += kKeys) {
    endCopies();
    __syncthreads();
    begin(values, value, k);
    CoreSums<kStrips, kKeys> scores;
    if (k < seenByWarp)
      dotRows<Width, kStrips, kKeys>(scores, TileRows<Width, T>{queries, row},
                                     keys);
    endCopies();
    __syncthreads();
    if (k + kKeys < end)
      begin(keys, key, k + kKeys);
    if (k >= seenByWarp)
      continue;
    if (causal.of(first + row) < k + kKeys)
      hideUnseen<false, kStrips, kKeys>(scores, causal, first + row, k);
    rows.template take<kKeys, Width>(scores, sums, scale);
    if constexpr (Drops) {
      CorePairs<kStrips, kKeys> shares;
      roundSums<T, kStrips, kKeys>(shares, scores);
      if (mask.drops())
        drop<kStrips, kKeys>(shares, mask, k);
      addWeighted<Width, kKeys, kStrips>(sums, shares, values);
    } else {
      addWeighted<Width, kKeys, kStrips>(sums, scores, values);
    }
  }
#pragma unroll
  for (int s = 0; s < kStrips; ++s)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = rows.totals[s][half];
      total += __shfl_xor_sync(0xffffffffU, total, 1);
      total += __shfl_xor_sync(0xffffffffU, total, 2);
      const int q = row + s * kStrip + half * 8 + lane / 4;
      if (lane % 4 == 0 && q < left)
        storeOne(kept, all.keptAt(block.sample, head, first + q),
                 rows.largest[s][half] * static_cast<float>(all.scale) +
                     logf(total));
      const float inverse = mask.factor() / total;
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) {
        sums[s][n][half * 2] *= inverse;
        sums[s][n][half * 2 + 1] *= inverse;
      }
    }
  storeSums<kStrips, Width>(to + at, stride, row, left, width, sums, 1.0F);
}

template <typename T, int Width>
void attentionOnCores(cudaStream_t stream, const Operand &query,
                      const Operand &key, const Operand &value,
                      const Result &to, const Result &kept, const Heads &all,
                      const Masks &masks) {
  using Shape = AttendShape<Width>;
  launch(stream,
         {.blocks =
              all.batch * all.heads * blocksFor(all.queries, Shape::kQueries),
          .threads = kCoreThreads,
          .shared = Shape::kShared},
         masks.limit > 0 ? attendOnCores<T, Width, true>
                         : attendOnCores<T, Width, false>,
         static_cast<const T *>(query.data), static_cast<const T *>(key.data),
         static_cast<const T *>(value.data), all, masks,
         static_cast<T *>(to.data), kept);
}

/// Computes attention for any element type. A block processes a tile of queries
/// of one head and sample.
template <typename R, int Widths>
__global__ void __launch_bounds__(kTileThreads)
    attend(Operand query, Operand key, Operand value, Result to, Result kept,
           Heads all, Masks masks) {
  const Mask mask = masks.now();
  __shared__ Tile<R> left, right, shares;
  const std::int64_t first = blockIdx.x % all.queryTiles() * kTile;
  const std::int64_t head = blockIdx.x / all.queryTiles() % all.heads;
  const std::int64_t b = blockIdx.x / all.queryTiles() / all.heads;
  const std::int64_t keyHead = head / all.ofHead();
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned row = threadIdx.x / kWarp * kRows;
  const std::int64_t last =
      first + kTile < all.queries ? first + kTile : all.queries;

  R largest[kRows], totals[kRows], sums[kRows][Widths] = {};
  for (int r = 0; r < kRows; ++r) {
    largest[r] = -R(INFINITY);
    totals[r] = R(0);
  }
  for (std::int64_t k = 0; k < all.visible(last - 1); k += kTile) {
    R scores[kRows] = {};
    addProducts(queryRows(all, query, b, head, first),
                keyRows(all, key, b, keyHead, k), all.width, left, right,
                scores);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const std::int64_t s = first + row + r;
      // A row beyond the last query attends to no keys.
      const bool seen = s < last && k + lane < all.visible(s);
      const R score =
          seen ? all.score(scores[r], head, s, k + lane) : -R(INFINITY);
      const R before = largest[r];
      const R top = overWarp(score, Larger());
      largest[r] = top > before || top != top ? top : before;
      // The factor is 1 if the maximum is unchanged, even if the maximum is
      // still -infinity.
      const R factor = before == largest[r] ? R(1) : exp(before - largest[r]);
      const R share = seen ? exp(score - largest[r]) : R(0);
      totals[r] = totals[r] * factor + share;
      for (int part = 0; part < Widths; ++part)
        sums[r][part] *= factor;
      shares[row + r][lane] =
          seen && mask.drops()
              ? share * mask.at<R>(all.maskAt(b, head, s, k + lane))
              : share;
    }
    addRows<false>(shares, keyRows(all, value, b, keyHead, k), all.width, left,
                   sums);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    totals[r] = overWarp(totals[r], Plus());
    if (lane == 0 && first + row + r < last)
      storeOne(kept, all.keptAt(b, head, first + row + r),
               largest[r] + log(totals[r]));
    totals[r] = R(1) / totals[r];
  }
  storeRows(to, all.queryAt(b, head, first), all.heads * all.width,
            last - first, all.width, sums, totals);
}

/// Queues attention, on tensor cores if suitCores() is true.
/// \param kept receives the log-sum-exp of each row, for the gradient
template <typename R, int Widths>
void attentionOf(cudaStream_t stream, const Operand &query, const Operand &key,
                 const Operand &value, const Result &to, const Result &kept,
                 const Heads &all, const Masks &masks) {
  if constexpr (std::is_same_v<R, float> && Widths * kTile <= kMostOnCores)
    if (suitCores(all, masks, {query, key, value, standing(to)}))
      return withHalf(query.type, [&](auto *tag) {
        attentionOnCores<std::remove_pointer_t<decltype(tag)>, Widths * kTile>(
            stream, query, key, value, to, kept, all, masks);
      });
  launch(stream, {all.batch * all.heads * all.queryTiles(), 1, kTileThreads},
         attend<R, Widths>, query, key, value, to, kept, all, masks);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_CUH
