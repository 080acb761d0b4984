//===- dropout.h - Vectorised dropout masks ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_DROPOUT_H
#define MTPLAN_RUNTIME_CPU_DROPOUT_H

#include "runtime/random/draws.h"

namespace mtplan::runtime::cpu {

/// Computes what maskValue returns, for `count` elements from `first` on.
class Mask {
public:
  /// \param rate  0 keeps all elements
  Mask(const Stream &theStream, double rate);

  bool drops() const { return limit > 0; }

  void fill(std::int64_t first, std::int64_t count, float *to) const;
  void fill(std::int64_t first, std::int64_t count, double *to) const;

  /// Does the same for the scores of consecutive keys, beginning with one that
  /// starts a group.
  /// \param first  index of the query plus that key; see scoreIndex
  void fillScores(std::int64_t first, std::int64_t count, float *to) const;
  void fillScores(std::int64_t first, std::int64_t count, double *to) const;

private:
  template <bool Scores, typename R>
  void fillAny(std::int64_t first, std::int64_t count, R *to) const;

  PhiloxKey key;
  std::uint64_t stream;
  std::uint32_t limit; ///< random bits from here on keep the element
  double factor;
};

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_DROPOUT_H
