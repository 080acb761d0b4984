//===- numbers.h - Tensors as arrays of float or double ---------*- C++ -*-===//
//
// Kernels compute in float, or in double if an operand or a result is f64.
// Tensors of that type are used in place; others pass through a buffer, part by
// part.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_NUMBERS_H
#define MTPLAN_RUNTIME_CPU_NUMBERS_H

#include <cstring>

#include "runtime/backend/element.h"
#include "runtime/backend/kernel.h"

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

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_NUMBERS_H
