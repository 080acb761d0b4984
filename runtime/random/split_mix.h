//===- split_mix.h - One round of SplitMix64 --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_RANDOM_SPLIT_MIX_H
#define MTPLAN_RUNTIME_RANDOM_SPLIT_MIX_H

#include <cstdint>

namespace mtplan::runtime {

/// Returns a hash of `x`: one step of SplitMix64 (Steele, Lea and Flood 2014).
constexpr std::uint64_t splitMix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_RANDOM_SPLIT_MIX_H
