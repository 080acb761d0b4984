//===- permutation.h - A shuffle that is never written down -----*- C++ -*-===//
//
// A permutation of 0 .. n - 1 of which any element can be asked for alone, so
// that a run resumes at any sample without replaying those before, and a corpus
// of any size needs no table: a Feistel network (Luby and Rackoff 1988) over
// the next even power of two with Philox for its rounds, walked until the
// number is below n (Black and Rogaway 2002).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_PERMUTATION_H
#define MTPLAN_RUNTIME_DATA_PERMUTATION_H

#include <cstdint>

namespace mtplan::runtime {

class Permutation {
public:
  /// \param size  n >= 1
  /// \param epoch each has its own order
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  /// \param index  >= 0 and < n
  std::int64_t operator()(std::int64_t index) const;

private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size;
  std::uint64_t seed;
  std::uint64_t epoch;
  int halfBits = 1;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_PERMUTATION_H
