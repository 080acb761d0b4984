//===- simd.h - One source for several vector widths ------------*- C++ -*-===//
//
// MTPLAN_CLONES before a function compiles it for plain x86-64, for AVX2 and
// for AVX-512; the first call selects one. Only leaf functions use it: loops
// over plain arrays that call nothing but inlined functions.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_SIMD_H
#define MTPLAN_RUNTIME_CPU_SIMD_H

#include <bit>
#include <cmath>
#include <cstdint>

// Sanitizers are not initialised yet when the selection runs.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MTPLAN_CLONES                                                          \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MTPLAN_CLONES
#endif

#define MTPLAN_INLINE inline __attribute__((always_inline))

namespace mtplan::runtime::cpu {

MTPLAN_INLINE double expOf(double x) { return std::exp(x); }

/// Computes e^x to two units in the last place as 2^k e^r with |r| <= ln 2 / 2.
/// Returns zero below 2^-124 and infinity where a float overflows; a NaN stays
/// NaN.
MTPLAN_INLINE float expOf(float x) {
  constexpr float kMagic = 12582912.0F; // 1.5 * 2^23: its last bit counts ones
  const float clamped = x < -86.0F ? -86.0F : (x > 89.0F ? 89.0F : x);
  const float shifted = clamped * 1.44269504F + kMagic;
  const float k = shifted - kMagic;
  // Splits ln 2 into two parts, the first with few bits.
  const float r = (clamped - k * 0.693359375F) + k * 2.12194440e-4F;
  // Taylor series; |r| <= 0.3466, so the next term is below 2^-27.
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // Uses 2^(k - 1) and doubles it, for k = 128.
  const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) + 126U)
                                 << 23;
  const float result = p * std::bit_cast<float>(exponent) * 2.0F;
  return x < -86.0F ? 0.0F : result;
}

template <typename R> MTPLAN_INLINE R sigmoidOf(R x) {
  return R(1) / (R(1) + expOf(-x));
}

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_SIMD_H
