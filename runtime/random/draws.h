//===- draws.h - Random draws of a step -------------------------*- C++ -*-===//
//
// Defines all random numbers, for the interpreter and for every backend. A
// stream is a purpose, a label and, where they matter, the layer, the step and
// the micro-batch. An element of a stream is drawn as
//
//   philox4x32(counter = {index low, index high, stream low, stream high},
//              key = {seed low, seed high})
//
// where `index` is the element's row-major index in the global tensor (for
// masks, the number of the draw) and `stream` is a 64-bit hash (streamOf). No
// draw depends on a layout.
//
//   parameters   normal, residual: 0.3 N(0, 1); zeros: 0.1 N(0, 1);
//                ones: 1 + 0.1 N(0, 1)
//   data         integers: uniform below the limit; of "targets" one in eight
//                is -1, no target; floats: N(0, 1). Samples are numbered over
//                all micro-batches and steps
//   masks        an element is kept if a uniform number reaches `rate`. Masks
//                continue from one micro-batch to the next, as samples do:
//                eight micro-batches of one drop what one of eight drops
//
// Parameters and data take ten rounds and one draw per element. Masks are most
// of what a step draws. They take seven rounds, like those of FlashAttention,
// and one draw for eight elements: element i of a draw uses 15 bits of word i /
// 2, of its low half if i is even, of its high half otherwise. With 15 bits, a
// half word without its sign bit compares as a 16-bit float like the integer
// does, and devices compare two of these at once. A mask therefore drops the
// nearest multiple of 2^-15 to its rate, which is off by at most 2^-16, but
// keeps at least one element in 2^15. The factor of kept elements follows the
// rate itself.
//
// The distributions of parameters show mistakes and are not meant for training:
// with zeros for a bias, adding it twice would go unnoticed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_RANDOM_DRAWS_H
#define MTPLAN_RUNTIME_RANDOM_DRAWS_H

#include <cstdint>
#include <string_view>

#include "runtime/random/philox.h"

namespace mtplan::runtime {

enum class Purpose : std::uint8_t { parameter = 1, data = 2, mask = 3 };

/// The place in training where a draw is made.
struct Moment {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0; ///< index of the layer
  bool drops = true;     ///< false: masks keep all elements, as in validation
};

/// Returns the share of elements that a mask of `rate` drops at this moment.
inline double rateAt(const Moment &moment, double rate) {
  return moment.drops ? rate : 0.0;
}

/// A sequence of random numbers, indexed by element.
class Stream {
public:
  PhiloxCounter wordsAt(std::int64_t index) const;
  /// Returns the words of a mask for elements kMaskDraw * draw and following.
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
  static Stream ofMask(const Moment &moment, std::string_view mask);

  /// Serves backends that draw many numbers at once.
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

/// Hashes `label` with FNV-1a, then applies one round of SplitMix64 per number,
/// so that streams whose labels or numbers differ are independent.
std::uint64_t streamOf(Purpose purpose, std::string_view label,
                       std::int64_t copy, std::int64_t step,
                       std::int64_t microBatch);

/// Returns the state to which streamOf adds step and micro-batch, for callers
/// that learn these later.
std::uint64_t streamOfAllSteps(Purpose purpose, std::string_view label,
                               std::int64_t copy);

/// Returns the initial value of one element; `init` as in mtp.parameter.
double initialValue(const Stream &stream, std::string_view init,
                    std::int64_t index);

/// Returns a target, or -1 for one in eight.
double targetValue(const Stream &stream, std::int64_t index,
                   std::int64_t limit);

inline constexpr int kMaskRounds = 7;
inline constexpr int kMaskDraw = 8;                ///< elements per draw
inline constexpr std::uint32_t kMaskBits = 0x7FFF; ///< of a half word

/// Returns the smallest 15-bit number that keeps an element: 0 to 2^15 - 1. A
/// rate below 2^-16 drops nothing; any rate below 1 keeps one element in 2^15.
constexpr std::uint32_t maskLimit(double rate) {
  const double limit = rate * (kMaskBits + 1) + 0.5;
  return limit < 1.0          ? 0
         : limit >= kMaskBits ? kMaskBits
                              : static_cast<std::uint32_t>(limit);
}

/// Returns the factor of kept elements.
constexpr double maskFactor(double rate) {
  return maskLimit(rate) == 0 ? 1.0 : 1.0 / (1.0 - rate);
}

/// Returns the factor of an element: 0 or maskFactor.
/// \param index  see maskIndex
double maskValue(const Stream &stream, double rate, std::int64_t index);

/// Returns the index in the mask's stream of the element with this index in its
/// micro-batch; the global tensor has `elements` elements per micro-batch.
inline std::int64_t maskIndex(const Moment &moment, std::int64_t elements,
                              std::int64_t index) {
  return moment.microBatch * elements + index;
}

/// The mask of a query's scores begins at a multiple of this, wherever that of
/// the previous query ends.
inline constexpr int kScoreGroup = 32;
constexpr std::int64_t scorePitch(std::int64_t keys) {
  return (keys + kScoreGroup - 1) / kScoreGroup * kScoreGroup;
}

/// Returns the index of a query's score in the mask, relative to the query's
/// first. In a group of 32 keys, one draw serves two keys in each of four
/// eights, as the lanes of a tensor core hold them: word w of draw d serves
/// keys 8w + 2d and 8w + 2d + 1.
constexpr std::int64_t scoreIndex(std::int64_t key) {
  return key / kScoreGroup * kScoreGroup + key % 8 / 2 * kMaskDraw +
         key % kScoreGroup / 8 * 2 + key % 2;
}

/// The label of the input that holds token targets, and of their count.
inline constexpr char kTargetsLabel[] = "targets";
inline constexpr char kCountLabel[] = "count";

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_RANDOM_DRAWS_H
