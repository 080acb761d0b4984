//===- rope.cuh - Rotary position embeddings --------------------*- C++ -*-===//
//
// Angles are computed in double, like in the reference kernel, because float
// angles of late positions are too inaccurate. A block processes all heads of
// one token, so that each angle is computed once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ROPE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ROPE_CUH

#include <cmath>
#include <vector>

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kRopeThreads = 128;
inline constexpr int kPairs = 128; ///< pairs per iteration

/// The shapes and attributes of a rotation: local positions, the global
/// position of the first, features of a token and of a head, and pairs of a
/// head.
struct Rotation {
  std::int64_t length, offset, width, headWidth, pairs;
  bool interleaved;
  double turn; ///< 1, or -1 for the inverse
};

/// Rotates the pairs of all heads of a token.
/// \param frequencies  the angle of each pair at position 1
template <typename R>
__global__ void rotate(Operand from, Result to, const double *frequencies,
                       Rotation all) {
  __shared__ R cosines[kPairs], sines[kPairs];
  const std::int64_t token = blockIdx.x, start = token * all.width;
  const double position =
      static_cast<double>(all.offset + token % all.length) * all.turn;
  const std::int64_t heads = all.width / all.headWidth;
  R x[kPack], y[kPack];
  for (std::int64_t some = 0; some < all.pairs; some += kPairs) {
    const std::int64_t pairs =
        all.pairs - some < kPairs ? all.pairs - some : std::int64_t{kPairs};
    __syncthreads(); // all threads have read the previous angles
    if (threadIdx.x < pairs) {
      const double angle = position * frequencies[some + threadIdx.x];
      cosines[threadIdx.x] = static_cast<R>(cos(angle));
      sines[threadIdx.x] = static_cast<R>(sin(angle));
    }
    __syncthreads();
    // A pack holds four complete pairs if they are interleaved, else one
    // element of each of eight pairs.
    const std::int64_t ofPack = all.interleaved ? kPack / 2 : kPack;
    const std::int64_t packs = (pairs + ofPack - 1) / ofPack;
    for (std::int64_t i = threadIdx.x; i < heads * packs; i += kRopeThreads) {
      const std::int64_t first = i % packs * ofPack;
      const int count =
          static_cast<int>(pairs - first < ofPack ? pairs - first : ofPack);
      const std::int64_t head = start + i / packs * all.headWidth;
      if (all.interleaved) {
        const std::int64_t at = head + 2 * (some + first);
        load(from, at, 2 * count, x);
        // Constant loop bounds, here and below, keep the pack in registers.
#pragma unroll
        for (int p = 0; p < kPack / 2; ++p)
          if (p < count) {
            const R c = cosines[first + p], s = sines[first + p],
                    was = x[2 * p];
            x[2 * p] = was * c - x[2 * p + 1] * s;
            x[2 * p + 1] = was * s + x[2 * p + 1] * c;
          }
        store(to, at, 2 * count, x);
        continue;
      }
      const std::int64_t at = head + some + first;
      load(from, at, count, x);
      load(from, at + all.pairs, count, y);
#pragma unroll
      for (int p = 0; p < kPack; ++p)
        if (p < count) {
          const R c = cosines[first + p], s = sines[first + p], was = x[p];
          x[p] = was * c - y[p] * s;
          y[p] = was * s + y[p] * c;
        }
      store(to, at, count, x);
      store(to, at + all.pairs, count, y);
    }
  }
  // Features that are not rotated are copied.
  const std::int64_t rest = all.headWidth - 2 * all.pairs;
  const std::int64_t packs = (rest + kPack - 1) / kPack;
  for (std::int64_t i = threadIdx.x; i < heads * packs; i += kRopeThreads) {
    const std::int64_t first = i % packs * kPack;
    const std::int64_t at =
        start + i / packs * all.headWidth + 2 * all.pairs + first;
    load(from, at, packAt(first, rest), x);
    store(to, at, packAt(first, rest), x);
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

/// Queues the rotation of all tokens.
template <typename R>
void rope(cudaStream_t stream, const Operand &from, const Result &to,
          const double *frequencies, std::int64_t samples,
          const Rotation &all) {
  launch(stream, {samples * all.length, 1, kRopeThreads}, rotate<R>, from, to,
         frequencies, all);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ROPE_CUH
