//===- draws.h - Random draws of a step -------------------------*- C++ -*-===//
//
// This file defines all random numbers of a step, for the interpreter and for
// every backend. A stream is identified by a purpose and a label. A stream
// whose values depend on the layer, the step or the micro-batch is also
// identified by these numbers. An element of a stream is drawn as
//
//   philox4x32(counter = {index low, index high, stream low, stream high},
//              key = {seed low, seed high})
//
// where `stream` is a 64-bit hash (streamOf) and `index` is the element's
// row-major index in the global tensor. For masks, `index` is the index of the
// draw. Draws therefore do not depend on the layout.
//
//   parameters   normal, residual: 0.3 N(0, 1); zeros: 0.1 N(0, 1);
//                ones: 1 + 0.1 N(0, 1)
//   data         integers: uniform below the limit, but one in eight "targets"
//                is -1 (no target); floats: N(0, 1). Sample numbers continue
//                over all micro-batches and steps
//   masks        an element is kept if a uniform number is at least `rate`.
//                The indices continue across micro-batches, so eight
//                micro-batches of one sample drop the same elements as one
//                micro-batch of eight samples
//
// Parameters and data use ten rounds and one draw per element. Most draws of a
// step are for masks. Masks therefore use seven rounds, like dropout in
// FlashAttention, and one draw for eight elements. Element i of a draw uses 15
// bits of word i / 2: bits of the low half if i is even, and of the high half
// otherwise. Half words without sign bits have the same order as integers and
// as 16-bit floats, so a device can compare two half words with one
// instruction. A mask therefore rounds its rate to a multiple of 2^-15, with an
// error of at most 2^-16, but keeps at least one element in 2^15. Kept elements
// are multiplied by 1 / (1 - rate) with the exact rate, or by 1 if the rounded
// rate is 0.
//
// These distributions of parameters are for tests and not for training. They
// expose errors that zeros would hide: a test would not notice that a zero bias
// is added twice.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_RANDOM_DRAWS_H
#define MTPLAN_RUNTIME_RANDOM_DRAWS_H

#include <cstdint>
#include <string_view>

#include "runtime/random/philox.h"

namespace mtplan::runtime {

enum class Purpose : std::uint8_t { parameter = 1, data = 2, mask = 3 };

struct Moment {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0;
  bool drops = true; ///< false: masks keep all elements, as in validation
};

/// Returns the fraction of elements that a mask drops; 0 without dropout.
inline double rateAt(const Moment &moment, double rate) {
  return moment.drops ? rate : 0.0;
}

class Stream {
public:
  PhiloxCounter wordsAt(std::int64_t index) const;
  /// Returns the words of a draw of a mask. The draw covers kMaskDraw elements,
  /// which start at element kMaskDraw * draw.
  PhiloxCounter maskWordsAt(std::int64_t draw) const;
  /// Returns a uniform number in [0, 1) with 32 bits.
  double uniformAt(std::int64_t index) const;
  /// Returns a standard normal number (Box and Muller 1958).
  double normalAt(std::int64_t index) const;
  /// Returns a uniform integer in [0, limit).
  std::int64_t integerAt(std::int64_t index, std::int64_t limit) const;

  /// Returns the stream of a parameter, which is the same at every step.
  static Stream ofParameter(std::uint64_t seed, std::string_view label,
                            std::int64_t copy);
  /// Returns the stream of an input, which is the same for all layers.
  static Stream ofData(const Moment &moment, std::string_view label);
  /// Returns the stream of a mask, which is the same for all micro-batches.
  static Stream ofMask(const Moment &moment, std::string_view mask);

  /// Returns the seed as the key of Philox, for kernels that draw numbers.
  PhiloxKey key() const {
    return {static_cast<std::uint32_t>(seed),
            static_cast<std::uint32_t>(seed >> 32)};
  }
  std::uint64_t number() const { return stream; }

private:
  PhiloxCounter counterAt(std::int64_t index) const;

  Stream(std::uint64_t theSeed, std::uint64_t theStream)
      : seed(theSeed), stream(theStream) {}

  std::uint64_t seed;
  std::uint64_t stream;
};

/// Returns the hash of a stream: FNV-1a over `label`, then one round of
/// SplitMix64 for each number. Streams with different labels or numbers are
/// thereby independent.
std::uint64_t streamOf(Purpose purpose, std::string_view label,
                       std::int64_t copy, std::int64_t step,
                       std::int64_t microBatch);

/// Returns the intermediate hash of streamOf, before the step and the
/// micro-batch are hashed.
std::uint64_t streamOfAllSteps(Purpose purpose, std::string_view label,
                               std::int64_t copy);

/// \param init  normal, residual, ones or zeros, as in mtp.parameter
double initialValue(const Stream &stream, std::string_view init,
                    std::int64_t index);

/// Returns a random target below `limit`; one target in eight is -1 (no
/// target).
double targetValue(const Stream &stream, std::int64_t index,
                   std::int64_t limit);

inline constexpr int kMaskRounds = 7;              ///< rounds of Philox
inline constexpr int kMaskDraw = 8;                ///< elements per draw
inline constexpr std::uint32_t kMaskBits = 0x7FFF; ///< half word without sign

/// Returns a limit from 0 to 2^15 - 1. An element is kept if its 15-bit random
/// number is at least the limit. A rate below 2^-16 drops nothing. A larger
/// rate below 1 keeps at least one element in 2^15.
constexpr std::uint32_t maskLimit(double rate) {
  const double limit = rate * (kMaskBits + 1) + 0.5;
  return limit < 1.0          ? 0
         : limit >= kMaskBits ? kMaskBits
                              : static_cast<std::uint32_t>(limit);
}

constexpr double maskFactor(double rate) {
  return maskLimit(rate) == 0 ? 1.0 : 1.0 / (1.0 - rate);
}

/// Returns the number by which an element is multiplied: 0 if the element is
/// dropped, otherwise maskFactor(rate).
/// \param index  see maskIndex
double maskValue(const Stream &stream, double rate, std::int64_t index);

/// Returns the index, in the mask's stream, of element `index` of a
/// micro-batch.
/// \param elements  elements of the global tensor per micro-batch
inline std::int64_t maskIndex(const Moment &moment, std::int64_t elements,
                              std::int64_t index) {
  return moment.microBatch * elements + index;
}

/// The mask of each query's scores starts at a multiple of this many elements.
inline constexpr int kScoreGroup = 32;
/// Returns the distance between the masks of consecutive queries, in elements.
constexpr std::int64_t scorePitch(std::int64_t keys) {
  return (keys + kScoreGroup - 1) / kScoreGroup * kScoreGroup;
}

/// Returns the index, in the mask, of a query's score for `key`. The index
/// counts from the query's first score. In a group of 32 keys, one draw covers
/// two adjacent keys of each of the four groups of eight keys. A lane of a
/// tensor core holds the same keys. Word w of draw d covers keys 8w + 2d and 8w
/// + 2d + 1.
constexpr std::int64_t scoreIndex(std::int64_t key) {
  return key / kScoreGroup * kScoreGroup + key % 8 / 2 * kMaskDraw +
         key % kScoreGroup / 8 * 2 + key % 2;
}

/// This input has the target token of every position.
inline constexpr char kTargetsLabel[] = "targets";
/// This input has the number of target tokens in a step.
inline constexpr char kCountLabel[] = "count";

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_RANDOM_DRAWS_H
