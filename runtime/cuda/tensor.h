//===- tensor.h - What kernels are told of a tensor -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_TENSOR_H
#define MTPLAN_RUNTIME_CUDA_TENSOR_H

#include "runtime/plan/plan.h"

namespace mtplan::runtime::cuda {

struct Operand {
  const void *data;
  ElementType type;
};

struct Result {
  void *data;
  ElementType type;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_TENSOR_H
