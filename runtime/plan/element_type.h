//===- element_type.h - Element types ---------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_ELEMENT_TYPE_H
#define MTPLAN_RUNTIME_PLAN_ELEMENT_TYPE_H

#include <cstdint>

namespace mtplan::runtime {

/// Offsets and strides in arenas are multiples of this many bytes.
inline constexpr std::int64_t kAlignment = 256;

enum class ElementType { f64, f32, f16, bf16, i32 };

constexpr std::int64_t bytesOf(ElementType type) {
  return type == ElementType::f64                               ? 8
         : type == ElementType::f32 || type == ElementType::i32 ? 4
                                                                : 2;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_ELEMENT_TYPE_H
