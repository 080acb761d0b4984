//===- tensor.h - Operands and results of kernels ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_H

#include <cstddef>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime::cuda {

/// Rounds a size in bytes up to the alignment of tensors.
constexpr std::size_t roundedUp(std::size_t bytes) {
  constexpr std::size_t kUnit = 256;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// Limits the sharded dimensions and the nested loops of a kernel.
inline constexpr int kMostDims = 8;

struct Operand {
  const void *data;
  ElementType type;
};

struct Result {
  void *data;
  ElementType type;
};

/// These constants denote an operand or a result that does not exist.
inline constexpr Operand kNone{nullptr, ElementType::f32};
inline constexpr Result kNowhere{nullptr, ElementType::f32};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_H
