//===- draws.h - What is random in a step, and how it is drawn --*- C++ -*-===//
//
// The one place that says so. A stream is a purpose, a label and, where they
// matter, the copy, the step and the micro-batch; an element of it is drawn as
//
//   philox4x32(counter = {index low, index high, stream low, stream high},
//              key = {seed low, seed high})
//
// where `index` is the element's row-major index in the global tensor and
// `stream` a 64-bit hash (streamOf). No draw depends on a layout.
//
//   parameters   normal, residual: 0.3 N(0, 1); zeros: 0.1 N(0, 1);
//                ones: 1 + 0.1 N(0, 1)
//   data         integers: uniform below the limit; of "targets" one in eight
//                is -1, no target; floats: N(0, 1)
//   masks        an element is kept if a uniform number reaches `rate`
//
// The parameters are made to show mistakes, not to train: with zeros for a
// bias, one that is added twice would go unseen.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_DRAWS_H
#define MTPLAN_IR_INTERPRET_DRAWS_H

#include <cstdint>

#include "llvm/ADT/StringRef.h"

#include "ir/interpret/philox.h"

namespace mtplan::ir {

enum class Purpose : std::uint8_t { parameter = 1, data = 2, mask = 3 };

/// Where in the step a draw is made.
struct Moment {
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::int64_t microBatch = 0;
  std::int64_t copy = 0; ///< of the segment
};

/// One sequence of random numbers, addressed by element.
class Stream {
public:
  PhiloxCounter wordsAt(std::int64_t index) const;
  /// Uniform in [0, 1), of 32 bits.
  double uniformAt(std::int64_t index) const;
  /// Standard normal (Box and Muller 1958).
  double normalAt(std::int64_t index) const;
  /// Uniform in [0, limit).
  std::int64_t integerAt(std::int64_t index, std::int64_t limit) const;

  /// Of a parameter, which is the same at every step.
  static Stream ofParameter(std::uint64_t seed, llvm::StringRef label,
                            std::int64_t copy);
  /// Of an input, which is the same for all copies.
  static Stream ofData(const Moment &moment, llvm::StringRef label);
  static Stream ofMask(const Moment &moment, llvm::StringRef mask);

private:
  Stream(std::uint64_t theSeed, std::uint64_t theStream)
      : seed(theSeed), stream(theStream) {}

  std::uint64_t seed;
  std::uint64_t stream;
};

/// FNV-1a of `label`, then one round of SplitMix64 for each number, so that
/// streams whose labels or numbers differ share nothing.
std::uint64_t streamOf(Purpose purpose, llvm::StringRef label,
                       std::int64_t copy, std::int64_t step,
                       std::int64_t microBatch);

/// Initial value of one element; `init` as in mtp.parameter.
double initialValue(const Stream &stream, llvm::StringRef init,
                    std::int64_t index);

/// One target, or -1 for one in eight.
double targetValue(const Stream &stream, std::int64_t index,
                   std::int64_t limit);

/// Factor that a dropped-out element is multiplied by: 0 or 1 / (1 - rate).
double maskValue(const Stream &stream, double rate, std::int64_t index);

/// The label of the input that token targets come from, and of their number.
inline constexpr llvm::StringLiteral kTargetsLabel = "targets";
inline constexpr llvm::StringLiteral kCountLabel = "count";

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_DRAWS_H
