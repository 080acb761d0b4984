//===- dropout.cpp - Dropout and its masks --------------------------------===//

#include "runtime/cpu/dropout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/cpu/families.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static_assert(std::endian::native == std::endian::little,
              "halves of words are read in little-endian order");

/// A call of drawMask computes kMany Philox draws, or kFew near the end.
constexpr std::int64_t kMany = 16, kFew = 8;

/// Computes the mask of the elements of draws [first, first + Draws).
/// \tparam Scores  whether the elements have the order of scoreIndex
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
  // Runs the rounds of runtime/random/philox.h on all draws together.
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
  // A group of scores has four draws: the first words of all four come first,
  // then their second words, and so on.
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

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

template <typename R>
MTPLAN_INLINE void multiplyAny(const R *a, const R *b, std::int64_t count,
                               R *to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = a[i] * b[i];
}
MTPLAN_CLONES void multiplyInto(const float *a, const float *b,
                                std::int64_t count, float *to) {
  multiplyAny(a, b, count, to);
}
MTPLAN_CLONES void multiplyInto(const double *a, const double *b,
                                std::int64_t count, double *to) {
  multiplyAny(a, b, count, to);
}

namespace {

template <typename R> class Dropout : public Kernel {
public:
  Dropout(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        rate(spec.number("rate", 0.0)), name(spec.text("mask", "")) {
    const TensorView &view = spec.outputs[0];
    if (!view.shape.empty()) {
      width = view.shape.back();
      rows = view.elements() / width;
    }
    for (std::size_t d = 0; d < view.shape.size(); ++d)
      whole *= pieceOf(view, d).global;
    context->reserve(0, 3 * kChunk * sizeof(R));
  }

  void run(const Invocation &call) override {
    const Mask mask(Stream::ofMask(call.moment(), name),
                    rateAt(call.moment(), rate));
    const std::int64_t piece = std::max<std::int64_t>(1, kTask / width);
    context->forRange(
        rows, piece, [&](std::int64_t first, std::int64_t count, int thread) {
          for (std::int64_t row = first; row < first + count; ++row)
            runRow(call, mask, row, context->ofThread<R>(thread));
        });
  }

private:
  /// Returns the index of a row's first element in the global tensor.
  std::int64_t indexOf(std::int64_t row) const {
    const TensorView &view = spec.outputs[0];
    std::int64_t index = 0, size = 1;
    for (std::size_t d = view.shape.size(); d-- > 0;) {
      const Span span = pieceOf(view, d);
      std::int64_t place = 0;
      if (d + 1 < view.shape.size()) {
        place = row % view.shape[d];
        row /= view.shape[d];
      }
      index += (span.offset + place) * size;
      size *= span.global;
    }
    return index;
  }

  void runRow(const Invocation &call, const Mask &mask, std::int64_t row,
              R *buffer) const {
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    const std::int64_t start = maskIndex(call.moment(), whole, indexOf(row));
    for (std::int64_t h = 0; h < width; h += kChunk) {
      const std::int64_t count = std::min(kChunk, width - h);
      const std::int64_t element = row * width + h;
      R *kept = buffer;
      if (mask.drops())
        mask.fill(start + h, count, kept);
      else
        std::fill_n(kept, count, R(1));
      R *result = target(to, call.outputs[0], element, buffer + 2 * kChunk);
      multiplyInto(widen(from, call.inputs[0], element, count, buffer + kChunk),
                   kept, count, result);
      narrow(to, call.outputs[0], element, count, result);
    }
  }

  const SharedContext context;
  const KernelSpec spec;
  const double rate;
  const std::string name;
  std::int64_t width = 1, rows = 1, whole = 1;
};

} // namespace

MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Dropout>(spec, context);
}

} // namespace mtplan::runtime::cpu
