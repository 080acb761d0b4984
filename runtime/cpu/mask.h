//===- mask.h - Dropout's masks, many elements at a time --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_MASK_H
#define MTPLAN_RUNTIME_CPU_MASK_H

#include "runtime/random/draws.h"

namespace mtplan::runtime::cpu {

/// What maskValue gives for `count` elements from `first` on.
class Mask {
public:
  /// \param rate  0: all are kept
  Mask(const Stream &theStream, double rate);

  bool drops() const { return limit > 0; }

  void fill(std::int64_t first, std::int64_t count, float *to) const;
  void fill(std::int64_t first, std::int64_t count, double *to) const;

  /// The same of scores: those of keys from one on that begins a group.
  /// \param first  index of the query plus that key; see scoreIndex
  void fillScores(std::int64_t first, std::int64_t count, float *to) const;
  void fillScores(std::int64_t first, std::int64_t count, double *to) const;

private:
  template <bool Scores, typename R>
  void fillAny(std::int64_t first, std::int64_t count, R *to) const;

  PhiloxKey key;
  std::uint64_t stream;
  std::uint32_t limit; ///< bits from here on keep
  double factor;
};

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_MASK_H
