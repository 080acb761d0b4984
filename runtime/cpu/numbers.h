//===- numbers.h - Tensors as arrays of float or double ---------*- C++ -*-===//
//
// Kernels compute in float, or in double if an operand or a result is f64.
// Tensors of that type are used in place; others pass through a buffer, part by
// part.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_NUMBERS_H
#define MTPLAN_RUNTIME_CPU_NUMBERS_H

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/backend/element.h"
#include "runtime/backend/kernel.h"

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

/// Elements that most kernels process at a time, so that all operands fit into
/// the first-level cache.
inline constexpr std::int64_t kChunk = 1024;
/// Elements that justify a task of their own.
inline constexpr std::int64_t kTask = 32 * kChunk;

template <typename R> constexpr ElementType typeOf();
template <> constexpr ElementType typeOf<float>() { return ElementType::f32; }
template <> constexpr ElementType typeOf<double>() { return ElementType::f64; }

inline std::byte *at(void *data, ElementType type, std::int64_t index) {
  return static_cast<std::byte *>(data) + index * bytesOf(type);
}
inline const std::byte *at(const void *data, ElementType type,
                           std::int64_t index) {
  return static_cast<const std::byte *>(data) + index * bytesOf(type);
}

void widenInto(ElementType type, const void *from, std::int64_t count,
               float *to);
void widenInto(ElementType type, const void *from, std::int64_t count,
               double *to);
void narrowInto(ElementType type, const float *from, std::int64_t count,
                void *to);
void narrowInto(ElementType type, const double *from, std::int64_t count,
                void *to);

/// Returns elements first, first + 1, ...; in `buffer` unless they have type R
/// already.
template <typename R>
const R *widen(ElementType type, const void *data, std::int64_t first,
               std::int64_t count, R *buffer) {
  const std::byte *from = at(data, type, first);
  if (type == typeOf<R>())
    return reinterpret_cast<const R *>(from);
  widenInto(type, from, count, buffer);
  return buffer;
}

/// Returns where to compute a part of a result; `narrow` then stores it.
template <typename R>
R *target(ElementType type, void *data, std::int64_t first, R *buffer) {
  return type == typeOf<R>() ? reinterpret_cast<R *>(at(data, type, first))
                             : buffer;
}
template <typename R>
void narrow(ElementType type, void *data, std::int64_t first,
            std::int64_t count, const R *from) {
  std::byte *to = at(data, type, first);
  if (reinterpret_cast<const std::byte *>(from) != to)
    narrowInto(type, from, count, to);
}

//===----------------------------------------------------------------------===//
// One source for several vector widths
//
// MTPLAN_CLONES before a function compiles it for plain x86-64, for AVX2 and
// for AVX-512; the first call selects one. Only leaf functions use it: loops
// over plain arrays that call nothing but inlined functions.
//===----------------------------------------------------------------------===//

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

#endif // MTPLAN_RUNTIME_CPU_NUMBERS_H
