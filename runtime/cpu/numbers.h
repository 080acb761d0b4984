//===- numbers.h - Tensors as arrays of float or double ---------*- C++ -*-===//
//
// Kernels compute in float, or in double if an operand or a result is f64.
// Tensors of the kernel's type are read and written in place; others are
// converted through a buffer, one chunk at a time.
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

// Sanitizer builds have no clones, because the dynamic linker selects a clone
// before a sanitizer is initialized.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MTPLAN_CLONES                                                          \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define MTPLAN_CLONES
#endif

#define MTPLAN_INLINE inline __attribute__((always_inline))

namespace mtplan::runtime::cpu {

/// Most kernels process this many elements at a time, which fit the L1 cache.
inline constexpr std::int64_t kChunk = 1024;
/// A task has this many elements, because a smaller task would not be worth the
/// cost of starting it on another thread.
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

/// Returns elements [first, first + count) as type R: in place if `type` is R,
/// otherwise converted into `buffer`.
template <typename R>
const R *widen(ElementType type, const void *data, std::int64_t first,
               std::int64_t count, R *buffer) {
  const std::byte *from = at(data, type, first);
  if (type == typeOf<R>())
    return reinterpret_cast<const R *>(from);
  widenInto(type, from, count, buffer);
  return buffer;
}

/// Returns the memory in which a result's elements from `first` on are
/// computed: the result if `type` is R, otherwise `buffer`. narrow() then
/// stores the elements.
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
// MTPLAN_CLONES compiles a function for plain x86-64, AVX2 and AVX-512, and
// selects a version at run time. Only functions that loop over plain arrays and
// call only inlined functions use the macro.
//===----------------------------------------------------------------------===//

MTPLAN_INLINE double expOf(double x) { return std::exp(x); }

/// Computes e^x as 2^k e^r with |r| <= ln 2 / 2, with an error of at most two
/// units in the last place. Returns 0 if e^x is below 2^-124, infinity if it
/// overflows, and NaN for NaN.
MTPLAN_INLINE float expOf(float x) {
  // Adding 1.5 * 2^23 rounds a float to an integer.
  constexpr float kMagic = 12582912.0F;
  const float clamped = x < -86.0F ? -86.0F : (x > 89.0F ? 89.0F : x);
  const float shifted = clamped * 1.44269504F + kMagic;
  const float k = shifted - kMagic;
  // k ln 2 is subtracted in two parts. The first part of ln 2 has so few bits
  // that its product with k is exact.
  const float r = (clamped - k * 0.693359375F) + k * 2.12194440e-4F;
  // The next term of the Taylor series is below 2^-27, because |r| <= 0.3466.
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // Multiplies by 2^(k - 1) and then by 2, because 2^128 is not a float.
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
