//===- numbers.cpp - Conversion of arrays ---------------------------------===//

#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

MTPLAN_CLONES void widenBf16(const Bf16 *__restrict from, std::int64_t count,
                             float *__restrict to) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = toFloat(from[i]);
}

MTPLAN_CLONES void narrowBf16(const float *__restrict from, std::int64_t count,
                              Bf16 *__restrict to) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = toBf16(from[i]);
}

namespace {

template <typename R>
void widenAny(ElementType type, const void *from, std::int64_t count, R *to) {
  if (type == typeOf<R>()) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(R));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<R>(readElement(type, from, i));
}

template <typename R>
void narrowAny(ElementType type, const R *from, std::int64_t count, void *to) {
  if (type == typeOf<R>()) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(R));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i)
    writeElement(type, to, i, static_cast<double>(from[i]));
}

} // namespace

void widenInto(ElementType type, const void *from, std::int64_t count,
               float *to) {
  if (type == ElementType::bf16)
    widenBf16(static_cast<const Bf16 *>(from), count, to);
  else
    widenAny(type, from, count, to);
}

void widenInto(ElementType type, const void *from, std::int64_t count,
               double *to) {
  widenAny(type, from, count, to);
}

void narrowInto(ElementType type, const float *from, std::int64_t count,
                void *to) {
  if (type == ElementType::bf16)
    narrowBf16(from, count, static_cast<Bf16 *>(to));
  else
    narrowAny(type, from, count, to);
}

void narrowInto(ElementType type, const double *from, std::int64_t count,
                void *to) {
  narrowAny(type, from, count, to);
}

} // namespace mtplan::runtime::cpu
