//===- half.cpp - Vectorized conversion of half precision -----------------===//

#include "runtime/communicator/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mtplan::runtime {
namespace {

#if defined(__x86_64__)

/// Returns whether the processor has F16C. Tests for AVX2 instead, which
/// implies F16C and which every compiler can test for.
bool hasInstructions() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

/// Converts the largest multiple of eight elements, and returns that number.
__attribute__((target("avx,f16c"))) std::int64_t
widenByEight(const F16 *from, float *to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                 reinterpret_cast<const __m128i *>(from + i))));
  return i;
}

__attribute__((target("avx,f16c"))) std::int64_t
narrowByEight(const float *from, F16 *to, std::int64_t count) {
  // A NaN loses all bits except its sign, like in toF16.
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 none = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 value = _mm256_loadu_ps(from + i);
    const __m256 plain =
        _mm256_blendv_ps(value, _mm256_or_ps(_mm256_and_ps(value, sign), none),
                         _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(plain, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

#endif

} // namespace

void widen(const F16 *from, float *to, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (hasInstructions())
    i = widenByEight(from, to, count);
#endif
  for (; i < count; ++i)
    to[i] = toFloat(from[i]);
}

void narrow(const float *from, F16 *to, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (hasInstructions())
    i = narrowByEight(from, to, count);
#endif
  for (; i < count; ++i)
    to[i] = toF16(from[i]);
}

} // namespace mtplan::runtime
