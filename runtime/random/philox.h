//===- philox.h - Counter-based random bits ---------------------*- C++ -*-===//
//
// Philox4x32 is the counter-based generator of Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011). The generator computes random bits
// from a counter and a key. Any rank can therefore draw any element without
// drawing the elements before it. SplitMix64 hashes the numbers that identify a
// stream.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_RANDOM_PHILOX_H
#define MTPLAN_RUNTIME_RANDOM_PHILOX_H

#include <array>
#include <cstdint>

namespace mtplan::runtime {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// A word is scaled to [0, 1) by 2^-32.
inline constexpr double kWordScale = 1.0 / 4294967296.0;

/// A round multiplies two words of the counter by the factors, and adds the
/// steps to the key.
inline constexpr std::uint32_t kPhiloxFactor0 = 0xD2511F53,
                               kPhiloxFactor1 = 0xCD9E8D57,
                               kPhiloxStep0 = 0x9E3779B9,
                               kPhiloxStep1 = 0xBB67AE85;

/// \tparam Rounds  the paper recommends ten; seven is the smallest number that
/// passes the paper's tests (table 2: BigCrush)
template <int Rounds = 10>
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  std::uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
  std::uint32_t key0 = key[0], key1 = key[1];
  for (int round = 0; round < Rounds; ++round) {
    const std::uint64_t left = std::uint64_t{kPhiloxFactor0} * a;
    const std::uint64_t right = std::uint64_t{kPhiloxFactor1} * c;
    a = static_cast<std::uint32_t>(right >> 32) ^ b ^ key0;
    b = static_cast<std::uint32_t>(right);
    c = static_cast<std::uint32_t>(left >> 32) ^ d ^ key1;
    d = static_cast<std::uint32_t>(left);
    key0 += kPhiloxStep0;
    key1 += kPhiloxStep1;
  }
  return {a, b, c, d};
}

/// Returns a hash of `x`: one step of SplitMix64 (Steele, Lea and Flood 2014).
constexpr std::uint64_t splitMix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_RANDOM_PHILOX_H
