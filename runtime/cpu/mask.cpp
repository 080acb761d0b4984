//===- mask.cpp - Vectorised dropout masks --------------------------------===//

#include "runtime/cpu/mask.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {

static_assert(std::endian::native == std::endian::little,
              "half words are read as they lie");

/// Random draws computed at once, for many elements and for few.
constexpr std::int64_t kMany = 16, kFew = 8;

/// Computes the mask of the elements of `Draws` draws from `first` on.
/// \tparam Scores  whether they are in the order of scoreIndex
template <std::int64_t Draws, bool Scores, typename R>
MTPLAN_INLINE void drawAny(std::uint64_t first, std::uint64_t stream,
                           std::uint32_t key0, std::uint32_t key1,
                           std::uint32_t limit, R kept, R *to) {
  std::uint32_t a[Draws], b[Draws], c[Draws], d[Draws];
  for (std::int64_t i = 0; i < Draws; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    a[i] = static_cast<std::uint32_t>(index);
    b[i] = static_cast<std::uint32_t>(index >> 32);
    c[i] = static_cast<std::uint32_t>(stream);
    d[i] = static_cast<std::uint32_t>(stream >> 32);
  }
  // Runs the rounds of runtime/random/philox.h for all draws at once.
  for (int round = 0; round < kMaskRounds; ++round) {
#pragma omp simd
    for (std::int64_t i = 0; i < Draws; ++i) {
      const std::uint64_t left = std::uint64_t{kPhiloxFactor0} * a[i];
      const std::uint64_t right = std::uint64_t{kPhiloxFactor1} * c[i];
      const std::uint32_t oldB = b[i], oldD = d[i];
      a[i] = static_cast<std::uint32_t>(right >> 32) ^ oldB ^ key0;
      b[i] = static_cast<std::uint32_t>(right);
      c[i] = static_cast<std::uint32_t>(left >> 32) ^ oldD ^ key1;
      d[i] = static_cast<std::uint32_t>(left);
    }
    key0 += kPhiloxStep0;
    key1 += kPhiloxStep1;
  }
  // For scores, four draws share a group: their first words, their second
  // words, ...
  constexpr std::int64_t kTogether = Scores ? kScoreGroup / kMaskDraw : 1;
  std::uint32_t words[Draws / kTogether][4][kTogether];
  for (std::int64_t i = 0; i < Draws; ++i) {
    words[i / kTogether][0][i % kTogether] = a[i];
    words[i / kTogether][1][i % kTogether] = b[i];
    words[i / kTogether][2][i % kTogether] = c[i];
    words[i / kTogether][3][i % kTogether] = d[i];
  }
  std::uint16_t halves[Draws * kMaskDraw];
  std::memcpy(halves, words, sizeof(halves));
  for (std::int64_t i = 0; i < Draws * kMaskDraw; ++i)
    to[i] = (halves[i] & kMaskBits) < limit ? R(0) : kept;
}
template <std::int64_t Draws, bool Scores>
MTPLAN_CLONES void drawMask(std::uint64_t first, std::uint64_t stream,
                            std::uint32_t key0, std::uint32_t key1,
                            std::uint32_t limit, float kept, float *to) {
  drawAny<Draws, Scores>(first, stream, key0, key1, limit, kept, to);
}
template <std::int64_t Draws, bool Scores>
MTPLAN_CLONES void drawMask(std::uint64_t first, std::uint64_t stream,
                            std::uint32_t key0, std::uint32_t key1,
                            std::uint32_t limit, double kept, double *to) {
  drawAny<Draws, Scores>(first, stream, key0, key1, limit, kept, to);
}

Mask::Mask(const Stream &theStream, double rate)
    : key(theStream.key()), stream(theStream.number()), limit(maskLimit(rate)),
      factor(maskFactor(rate)) {}

template <bool Scores, typename R>
void Mask::fillAny(std::int64_t first, std::int64_t count, R *to) const {
  const R kept = static_cast<R>(factor);
  const auto draw = [&]<std::int64_t Draws>(std::int64_t element, R *into) {
    drawMask<Draws, Scores>(static_cast<std::uint64_t>(element / kMaskDraw),
                            stream, key[0], key[1], limit, kept, into);
    return Draws * kMaskDraw;
  };
  std::int64_t done = 0;
  while (done < count) {
    const std::int64_t element = first + done, left = count - done;
    const std::int64_t skip = element % kMaskDraw;
    if (skip == 0 && left >= kMany * kMaskDraw) {
      done += draw.template operator()<kMany>(element, to + done);
    } else if (skip == 0 && left >= kFew * kMaskDraw) {
      done += draw.template operator()<kFew>(element, to + done);
    } else {
      R some[kFew * kMaskDraw];
      draw.template operator()<kFew>(element, some);
      const std::int64_t piece = std::min(kFew * kMaskDraw - skip, left);
      std::copy_n(some + skip, piece, to + done);
      done += piece;
    }
  }
}

void Mask::fill(std::int64_t first, std::int64_t count, float *to) const {
  fillAny<false>(first, count, to);
}
void Mask::fill(std::int64_t first, std::int64_t count, double *to) const {
  fillAny<false>(first, count, to);
}
void Mask::fillScores(std::int64_t first, std::int64_t count, float *to) const {
  fillAny<true>(first, count, to);
}
void Mask::fillScores(std::int64_t first, std::int64_t count,
                      double *to) const {
  fillAny<true>(first, count, to);
}

} // namespace mtplan::runtime::cpu
