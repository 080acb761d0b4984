//===- philox.h - Philox4x32-10 ---------------------------------*- C++ -*-===//
//
// The counter-based generator of Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3" (SC 2011): random bits as a function of a counter and a
// key, so that any rank can draw any element without drawing those before it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_RANDOM_PHILOX_H
#define MTPLAN_RUNTIME_RANDOM_PHILOX_H

#include <array>
#include <cstdint>

namespace mtplan::runtime {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// A word as a share of all: 2^-32.
inline constexpr double kWordScale = 1.0 / 4294967296.0;

/// Ten rounds.
inline PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    const auto high = [](std::uint64_t x) {
      return static_cast<std::uint32_t>(x >> 32);
    };
    counter = {high(product1) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               high(product0) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_RANDOM_PHILOX_H
