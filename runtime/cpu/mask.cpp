//===- mask.cpp - Dropout's masks, many elements at a time ----------------===//

#include "runtime/cpu/mask.h"

#include <algorithm>
#include <cmath>

#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {

/// Draws at once, of four words each.
constexpr std::int64_t kDraws = 16;

/// What the words of draws `first` and following make of their elements.
template <typename R>
MTPLAN_INLINE void drawAny(std::uint64_t first, std::uint64_t stream,
                           std::uint32_t key0, std::uint32_t key1,
                           std::uint32_t limit, R kept, R *to) {
  std::uint32_t a[kDraws], b[kDraws], c[kDraws], d[kDraws];
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    a[i] = static_cast<std::uint32_t>(index);
    b[i] = static_cast<std::uint32_t>(index >> 32);
    c[i] = static_cast<std::uint32_t>(stream);
    d[i] = static_cast<std::uint32_t>(stream >> 32);
  }
  // Ten rounds, as in runtime/random/philox.h.
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const std::uint64_t left = 0xD2511F53ULL * a[i];
      const std::uint64_t right = 0xCD9E8D57ULL * c[i];
      const std::uint32_t oldB = b[i], oldD = d[i];
      a[i] = static_cast<std::uint32_t>(right >> 32) ^ oldB ^ key0;
      b[i] = static_cast<std::uint32_t>(right);
      c[i] = static_cast<std::uint32_t>(left >> 32) ^ oldD ^ key1;
      d[i] = static_cast<std::uint32_t>(left);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < kDraws; ++i) {
    to[4 * i] = a[i] < limit ? R(0) : kept;
    to[4 * i + 1] = b[i] < limit ? R(0) : kept;
    to[4 * i + 2] = c[i] < limit ? R(0) : kept;
    to[4 * i + 3] = d[i] < limit ? R(0) : kept;
  }
}
MTPLAN_CLONES void drawMask(std::uint64_t first, std::uint64_t stream,
                            std::uint32_t key0, std::uint32_t key1,
                            std::uint32_t limit, float kept, float *to) {
  drawAny(first, stream, key0, key1, limit, kept, to);
}
MTPLAN_CLONES void drawMask(std::uint64_t first, std::uint64_t stream,
                            std::uint32_t key0, std::uint32_t key1,
                            std::uint32_t limit, double kept, double *to) {
  drawAny(first, stream, key0, key1, limit, kept, to);
}

Mask::Mask(const Stream &theStream, double rate)
    : key(theStream.key()), stream(theStream.number()),
      // The least word that, as a share of 2^32, reaches the rate.
      limit(static_cast<std::uint32_t>(
          std::min(std::ceil(rate * 4294967296.0), 4294967295.0))),
      factor(1.0 / (1.0 - rate)) {}

template <typename R>
void Mask::fillAny(std::int64_t first, std::int64_t count, R *to) const {
  const R kept = static_cast<R>(factor);
  const auto draw = [&](std::int64_t element, R *into) {
    drawMask(static_cast<std::uint64_t>(element / 4), stream, key[0], key[1],
             limit, kept, into);
  };
  std::int64_t done = 0;
  while (done < count) {
    const std::int64_t element = first + done;
    if (element % 4 == 0 && count - done >= 4 * kDraws) {
      draw(element, to + done);
      done += 4 * kDraws;
      continue;
    }
    R some[4 * kDraws];
    draw(element, some);
    const std::int64_t skip = element % 4;
    const std::int64_t piece = std::min(4 * kDraws - skip, count - done);
    std::copy_n(some + skip, piece, to + done);
    done += piece;
  }
}

void Mask::fill(std::int64_t first, std::int64_t count, float *to) const {
  fillAny(first, count, to);
}
void Mask::fill(std::int64_t first, std::int64_t count, double *to) const {
  fillAny(first, count, to);
}

} // namespace mtplan::runtime::cpu
