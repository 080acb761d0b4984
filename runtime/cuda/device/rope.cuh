//===- rope.cuh - Rotary position embeddings --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ROPE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ROPE_CUH

#include <cmath>
#include <vector>

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kRopeThreads = 256;
inline constexpr int kRopeTokens = 4; ///< tokens per block
inline constexpr int kPairs = 128;    ///< pairs of a token per iteration

/// Describes the rotation of `length` local positions, the first of which has
/// the global position `offset`. A token has `width` features, and a head has
/// `headWidth` features and `pairs` rotated pairs.
struct Rotation {
  std::int64_t length, offset, width, headWidth, pairs;
  bool interleaved;
  double turn; ///< 1, or -1 for the inverse
};

/// Begins to move the cache line of `data` to the L2 cache.
inline __device__ void prefetch([[maybe_unused]] const void *data) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(data));
#endif
}

/// Rotates the pairs of all tokens. A block processes all heads of kRopeTokens
/// tokens, so that each angle is computed once. Angles are computed in double,
/// because float angles of late positions are too inaccurate.
template <typename R>
__global__ void __launch_bounds__(kRopeThreads, sizeof(R) == 4 ? 5 : 3)
    rotate(Operand from, Result to, const double *frequencies,
           std::int64_t tokens, Rotation all) {
  __shared__ R cosines[kRopeTokens * kPairs], sines[kRopeTokens * kPairs];
  const std::int64_t token = std::int64_t{blockIdx.x} * kRopeTokens,
                     start = token * all.width;
  // Division is faster in 32 bits.
  const auto tokensHere = static_cast<unsigned>(
      tokens - token < kRopeTokens ? tokens - token : kRopeTokens);
  const auto heads = static_cast<unsigned>(all.width / all.headWidth);
  // The tokens move to the L2 cache while the angles are computed.
  constexpr unsigned kLine = 128;
  const auto bytes =
      static_cast<unsigned>(tokensHere * all.width * bytesOf(from.type));
  for (unsigned b = threadIdx.x * kLine; b < bytes; b += kRopeThreads * kLine)
    prefetch(static_cast<const char *>(from.data) + start * bytesOf(from.type) +
             b);
  R x[2][kPack];
  for (std::int64_t some = 0; some < all.pairs; some += kPairs) {
    const auto pairs = static_cast<unsigned>(
        all.pairs - some < kPairs ? all.pairs - some : kPairs);
    __syncthreads(); // all threads have read the previous angles
    for (unsigned i = threadIdx.x; i < tokensHere * pairs; i += kRopeThreads) {
      const unsigned t = i / pairs, pair = i % pairs;
      const std::int64_t local =
          token + t - quotient(token + t, all.length) * all.length;
      const double position =
          static_cast<double>(all.offset + local) * all.turn;
      const double angle = position * frequencies[some + pair];
      double sine = 0.0, cosine = 0.0;
      sincos(angle, &sine, &cosine);
      cosines[t * kPairs + pair] = static_cast<R>(cosine);
      sines[t * kPairs + pair] = static_cast<R>(sine);
    }
    __syncthreads();
    // A pack holds four complete pairs if they are interleaved, else one
    // element of each of eight pairs.
    const unsigned ofPack = all.interleaved ? kPack / 2 : kPack;
    const unsigned packs = (pairs + ofPack - 1) / ofPack;
    for (unsigned i = threadIdx.x; i < tokensHere * heads * packs;
         i += kRopeThreads) {
      const unsigned head = i / packs, first = i % packs * ofPack;
      const unsigned angle = head / heads * kPairs + first;
      const int count =
          static_cast<int>(pairs - first < ofPack ? pairs - first : ofPack);
      const std::int64_t begin = start + head * all.headWidth;
      if (all.interleaved) {
        const std::int64_t at = begin + 2 * (some + first);
        load(from, at, 2 * count, x[0]);
        // Constant loop bounds, here and below, keep the pack in registers.
#pragma unroll
        for (int p = 0; p < kPack / 2; ++p)
          if (p < count) {
            const R c = cosines[angle + p], s = sines[angle + p],
                    was = x[0][2 * p];
            x[0][2 * p] = was * c - x[0][2 * p + 1] * s;
            x[0][2 * p + 1] = was * s + x[0][2 * p + 1] * c;
          }
        store(to, at, 2 * count, x[0]);
        continue;
      }
      const std::int64_t at = begin + some + first;
      loadPacks(from, {at, at + all.pairs}, {count, count}, x);
#pragma unroll
      for (int p = 0; p < kPack; ++p)
        if (p < count) {
          const R c = cosines[angle + p], s = sines[angle + p], was = x[0][p];
          x[0][p] = was * c - x[1][p] * s;
          x[1][p] = was * s + x[1][p] * c;
        }
      store(to, at, count, x[0]);
      store(to, at + all.pairs, count, x[1]);
    }
  }
  // Features that are not rotated are copied.
  const std::int64_t rest = all.headWidth - 2 * all.pairs;
  const auto packs = static_cast<unsigned>((rest + kPack - 1) / kPack);
  for (unsigned i = threadIdx.x; i < tokensHere * heads * packs;
       i += kRopeThreads) {
    const std::int64_t first = i % packs * kPack;
    const std::int64_t at =
        start + i / packs * all.headWidth + 2 * all.pairs + first;
    load(from, at, packAt(first, rest), x[0]);
    store(to, at, packAt(first, rest), x[0]);
  }
}

/// Returns the angle of each pair at position 1.
inline std::vector<double> ropeFrequencies(double theta, std::int64_t pairs) {
  std::vector<double> powers;
  for (std::int64_t i = 0; i < pairs; ++i)
    powers.push_back(
        std::pow(theta, -static_cast<double>(i) / static_cast<double>(pairs)));
  return powers;
}

template <typename R>
void rope(cudaStream_t stream, const Operand &from, const Result &to,
          const double *frequencies, std::int64_t samples,
          const Rotation &all) {
  const std::int64_t tokens = samples * all.length;
  launch(stream, {blocksFor(tokens, kRopeTokens), 1, kRopeThreads}, rotate<R>,
         from, to, frequencies, tokens, all);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ROPE_CUH
