//===- tensor.h - What kernels are told of a tensor -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_H

#include <cstddef>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime::cuda {

/// Bytes, so that what comes after them is aligned.
constexpr std::size_t roundedUp(std::size_t bytes) {
  constexpr std::size_t kUnit = 256;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// Of a tensor that is cut along them.
inline constexpr int kMostDims = 8;

struct Operand {
  const void *data;
  ElementType type;
};

struct Result {
  void *data;
  ElementType type;
};

/// Where there is no such operand or result.
inline constexpr Operand kNone{nullptr, ElementType::f32};
inline constexpr Result kNowhere{nullptr, ElementType::f32};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_H
