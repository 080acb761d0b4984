//===- draws.h - What is random in a step, and how it is drawn --*- C++ -*-===//
//
// The one place that says so, for the interpreter and for every backend. A
// stream is a purpose, a label and, where they matter, the copy, the step and
// the micro-batch; an element of it is drawn as
//
//   philox4x32(counter = {index low, index high, stream low, stream high},
//              key = {seed low, seed high})
//
// where `index` is the element's row-major index in the global tensor, of masks
// the number of the draw, and `stream` a 64-bit hash (streamOf). No draw
// depends on a layout.
//
//   parameters   normal, residual: 0.3 N(0, 1); zeros: 0.1 N(0, 1);
//                ones: 1 + 0.1 N(0, 1)
//   data         integers: uniform below the limit; of "targets" one in eight
//                is -1, no target; floats: N(0, 1)
//   masks        an element is kept if a uniform number reaches `rate`; they
//                are of no micro-batch, but go on from one to the next, as
//                samples do: eight micro-batches of one drop what one of eight
//                does
//
// Parameters and data take ten rounds and a draw for each element. Masks are
// most of what a step draws, and take seven rounds, as FlashAttention's do, and
// a draw for eight elements: element i of a draw has 15 bits of word i / 2, of
// its low half if i is even, else of its high one. (Not 16: as a 16-bit float,
// what is left of a half word without its sign compares as the integer does,
// which devices do two at once.) So a mask drops its rate to the nearest
// 2^-15, which is off by 2^-16 at most, but keeps one in 2^15 of rates nearer
// to 1; the factor of what is kept is that of the rate itself.
//
// The parameters are made to show mistakes, not to train: with zeros for a
// bias, one that is added twice would go unseen.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_RANDOM_DRAWS_H
#define MTPLAN_RUNTIME_RANDOM_DRAWS_H

#include <cstdint>
#include <string_view>

#include "runtime/random/philox.h"

namespace mtplan::runtime {

enum class Purpose : std::uint8_t { parameter = 1, data = 2, mask = 3 };

/// Where in the step a draw is made.
struct Moment {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0; ///< of the segment
  bool drops = true;     ///< false: masks keep all, as in validation
};

/// The share of elements that a mask of `rate` drops at this moment.
inline double rateAt(const Moment &moment, double rate) {
  return moment.drops ? rate : 0.0;
}

/// One sequence of random numbers, addressed by element.
class Stream {
public:
  PhiloxCounter wordsAt(std::int64_t index) const;
  /// Of a mask, for elements kMaskDraw * draw and following.
  PhiloxCounter maskWordsAt(std::int64_t draw) const;
  /// Uniform in [0, 1), of 32 bits.
  double uniformAt(std::int64_t index) const;
  /// Standard normal (Box and Muller 1958).
  double normalAt(std::int64_t index) const;
  /// Uniform in [0, limit).
  std::int64_t integerAt(std::int64_t index, std::int64_t limit) const;

  /// Of a parameter, which is the same at every step.
  static Stream ofParameter(std::uint64_t seed, std::string_view label,
                            std::int64_t copy);
  /// Of an input, which is the same for all copies.
  static Stream ofData(const Moment &moment, std::string_view label);
  static Stream ofMask(const Moment &moment, std::string_view mask);

  /// For backends that draw many at once.
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

/// FNV-1a of `label`, then one round of SplitMix64 for each number, so that
/// streams whose labels or numbers differ share nothing.
std::uint64_t streamOf(Purpose purpose, std::string_view label,
                       std::int64_t copy, std::int64_t step,
                       std::int64_t microBatch);

/// What streamOf goes on from with step and micro-batch, for who learns of
/// these later.
std::uint64_t streamOfAllSteps(Purpose purpose, std::string_view label,
                               std::int64_t copy);

/// Initial value of one element; `init` as in mtp.parameter.
double initialValue(const Stream &stream, std::string_view init,
                    std::int64_t index);

/// One target, or -1 for one in eight.
double targetValue(const Stream &stream, std::int64_t index,
                   std::int64_t limit);

inline constexpr int kMaskRounds = 7;
inline constexpr int kMaskDraw = 8;                ///< elements of a draw
inline constexpr std::uint32_t kMaskBits = 0x7FFF; ///< of a half word

/// The least 15 bits that keep an element: 0 to 2^15 - 1. A rate below 2^-16
/// drops nothing; what is below 1 always keeps one in 2^15.
constexpr std::uint32_t maskLimit(double rate) {
  const double limit = rate * (kMaskBits + 1) + 0.5;
  return limit < 1.0          ? 0
         : limit >= kMaskBits ? kMaskBits
                              : static_cast<std::uint32_t>(limit);
}

/// Factor of what a mask keeps.
constexpr double maskFactor(double rate) {
  return maskLimit(rate) == 0 ? 1.0 : 1.0 / (1.0 - rate);
}

/// What an element is multiplied by: 0 or maskFactor.
/// \param index  see maskIndex
double maskValue(const Stream &stream, double rate, std::int64_t index);

/// Index in the stream of a mask of what has this index in its micro-batch, of
/// `elements` in the whole tensor.
inline std::int64_t maskIndex(const Moment &moment, std::int64_t elements,
                              std::int64_t index) {
  return moment.microBatch * elements + index;
}

/// Scores of a query are masked from a multiple of this on, wherever the query
/// before it ends.
inline constexpr int kScoreGroup = 32;
constexpr std::int64_t scorePitch(std::int64_t keys) {
  return (keys + kScoreGroup - 1) / kScoreGroup * kScoreGroup;
}

/// Index of a query's score in the mask of all, from the query's first on. In
/// groups of 32 keys one draw is for two keys in each of four eights, as lanes
/// of a tensor core hold them: word w of draw d is for 8w + 2d and 8w + 2d + 1.
constexpr std::int64_t scoreIndex(std::int64_t key) {
  return key / kScoreGroup * kScoreGroup + key % 8 / 2 * kMaskDraw +
         key % kScoreGroup / 8 * 2 + key % 2;
}

/// The label of the input that token targets come from, and of their number.
inline constexpr char kTargetsLabel[] = "targets";
inline constexpr char kCountLabel[] = "count";

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_RANDOM_DRAWS_H
