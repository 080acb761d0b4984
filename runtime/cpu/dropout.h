//===- dropout.h - Vectorized dropout masks ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_DROPOUT_H
#define MTPLAN_RUNTIME_CPU_DROPOUT_H

#include "runtime/random/draws.h"

namespace mtplan::runtime::cpu {

/// Computes a dropout mask, with one factor per element, like maskValue
/// (runtime/random/draws.h).
class Mask {
public:
  Mask(const Stream &theStream, double rate);

  bool drops() const { return limit > 0; }

  void fill(std::int64_t first, std::int64_t count, float *to) const;
  void fill(std::int64_t first, std::int64_t count, double *to) const;

  /// Writes the factors of one query's scores for `count` consecutive keys. The
  /// first key must start a group (kScoreGroup). `first` is the index of the
  /// query's first score plus the index of the first key.
  void fillScores(std::int64_t first, std::int64_t count, float *to) const;
  void fillScores(std::int64_t first, std::int64_t count, double *to) const;

private:
  template <bool Scores, typename R>
  void fillAny(std::int64_t first, std::int64_t count, R *to) const;

  PhiloxKey key;
  std::uint64_t stream;
  std::uint32_t limit; ///< random bits below this drop an element
  double factor;
};

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_DROPOUT_H
