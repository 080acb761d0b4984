//===- element.h - Floating-point numbers in memory -------------*- C++ -*-===//
//
// Conversions to the two 16-bit formats return the nearest value, ties to even.
// A double is first rounded to odd in float (the float's last bit is set if
// bits were lost), so that the second rounding sees a tie only if the double is
// a tie.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_ELEMENT_H
#define MTPLAN_RUNTIME_BACKEND_ELEMENT_H

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Holds the upper 16 bits of a float.
struct Bf16 {
  std::uint16_t bits = 0;
};

/// Holds an IEEE 754 binary16 number.
struct F16 {
  std::uint16_t bits = 0;
};

inline float toFloat(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline Bf16 toBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
  const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return {static_cast<std::uint16_t>((nan ? bits | 0x400000 : rounded) >> 16)};
}

inline float toFloat(F16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000)
                             << 16;
  const std::uint32_t magnitude = value.bits & 0x7FFF;
  std::uint32_t bits = (magnitude << 13) + 0x38000000;
  if (magnitude < 0x400) // subnormal: in units of 2^-24
    bits =
        std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  else if (magnitude >= 0x7C00) // infinity or NaN
    bits = (magnitude << 13) + 0x70000000;
  return std::bit_cast<float>(bits | sign);
}

inline F16 toF16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000) // NaN
    half = 0x7E00;
  else if (magnitude >= 0x477FF000) // nearer to infinity than to 65504
    half = 0x7C00;
  else if (magnitude < 0x38800000) // a subnormal, in units of 2^-24
    half =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
        0x3F000000;
  else
    half = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
  return {static_cast<std::uint16_t>(((bits >> 16) & 0x8000) | half)};
}

/// Rounds to odd: a value that no float represents becomes the neighbouring
/// float whose last bit is set.
inline float toFloatSticky(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value))
    return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value))
    --bits;
  return std::bit_cast<float>(bits | 1);
}

inline double readElement(ElementType type, const void *data,
                          std::int64_t index) {
  switch (type) {
  case ElementType::f64:
    return static_cast<const double *>(data)[index];
  case ElementType::f32:
    return static_cast<const float *>(data)[index];
  case ElementType::f16:
    return toFloat(static_cast<const F16 *>(data)[index]);
  case ElementType::bf16:
    return toFloat(static_cast<const Bf16 *>(data)[index]);
  case ElementType::i32:
    return static_cast<const std::int32_t *>(data)[index];
  }
  return 0.0;
}

/// Stores a value, rounded once to `type`.
inline void writeElement(ElementType type, void *data, std::int64_t index,
                         double value) {
  switch (type) {
  case ElementType::f64:
    static_cast<double *>(data)[index] = value;
    break;
  case ElementType::f32:
    static_cast<float *>(data)[index] = static_cast<float>(value);
    break;
  case ElementType::f16:
    static_cast<F16 *>(data)[index] = toF16(toFloatSticky(value));
    break;
  case ElementType::bf16:
    static_cast<Bf16 *>(data)[index] = toBf16(toFloatSticky(value));
    break;
  case ElementType::i32:
    static_cast<std::int32_t *>(data)[index] =
        static_cast<std::int32_t>(std::nearbyint(value));
    break;
  }
}

constexpr const char *nameOf(ElementType type) {
  switch (type) {
  case ElementType::f64:
    return "f64";
  case ElementType::f32:
    return "f32";
  case ElementType::f16:
    return "f16";
  case ElementType::bf16:
    return "bf16";
  case ElementType::i32:
    return "i32";
  }
  return "";
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_ELEMENT_H
