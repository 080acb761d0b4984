//===- mask.cpp - Dropout's masks, many elements at a time ----------------===//

#include "runtime/cpu/mask.h"

#include <algorithm>
#include <cmath>

#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {

/// Draws at once, of four words each.
constexpr std::int64_t kDraws = 16;

/// The words of draws `first` and following, in order of elements.
MTPLAN_CLONES void drawWords(std::uint64_t first, std::uint64_t stream,
                             std::uint32_t key0, std::uint32_t key1,
                             std::uint32_t *to) {
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
  for (std::int64_t i = 0; i < kDraws; ++i) {
    to[4 * i] = a[i];
    to[4 * i + 1] = b[i];
    to[4 * i + 2] = c[i];
    to[4 * i + 3] = d[i];
  }
}

Mask::Mask(const Stream &theStream, double rate)
    : key(theStream.key()), stream(theStream.number()),
      // The least word that, as a share of 2^32, reaches the rate.
      limit(static_cast<std::uint64_t>(std::ceil(rate * 4294967296.0))),
      factor(1.0 / (1.0 - rate)) {}

template <typename R>
void Mask::fillAny(std::int64_t first, std::int64_t count, R *to) const {
  std::uint32_t words[4 * kDraws];
  const R kept = static_cast<R>(factor);
  std::int64_t done = 0;
  while (done < count) {
    const std::int64_t element = first + done;
    const std::int64_t skip = element % 4;
    drawWords(static_cast<std::uint64_t>(element / 4), stream, key[0], key[1],
              words);
    const std::int64_t piece = std::min(4 * kDraws - skip, count - done);
    for (std::int64_t i = 0; i < piece; ++i)
      to[done + i] = words[skip + i] < limit ? R(0) : kept;
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
