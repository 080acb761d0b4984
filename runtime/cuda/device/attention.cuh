//===- attention.cuh - Attention, with a running softmax --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_CUH

#include "runtime/cuda/device/attention_cores.cuh"

namespace mtplan::runtime::cuda {

template <typename R> __device__ R largestOfWarp(R value) {
#pragma unroll
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    const R other = __shfl_xor_sync(0xffffffffU, value, apart);
    // A NaN stays.
    value = value > other || value != value ? value : other;
  }
  return value;
}

/// A block for each tile of queries of each head of each sample.
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
      // A row that is not there has no keys.
      const bool seen = s < last && k + lane < all.visible(s);
      const R score =
          seen ? all.score(scores[r], head, s, k + lane) : -R(INFINITY);
      const R before = largest[r];
      const R top = largestOfWarp(score);
      largest[r] = top > before || top != top ? top : before;
      // Of nothing seen yet there is nothing to scale.
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
#pragma unroll
    for (int apart = kWarp / 2; apart > 0; apart /= 2)
      totals[r] += __shfl_xor_sync(0xffffffffU, totals[r], apart);
    if (lane == 0 && first + row + r < last)
      storeOne(kept, all.keptAt(b, head, first + row + r),
               largest[r] + log(totals[r]));
    totals[r] = R(1) / totals[r];
  }
  storeRows(to, all.queryAt(b, head, first), all.heads * all.width,
            last - first, all.width, sums, totals);
}

/// \param kept  of each row, for the gradient
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
