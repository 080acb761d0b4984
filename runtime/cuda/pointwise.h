//===- pointwise.h - Kernels that go element by element ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_POINTWISE_H
#define MTPLAN_RUNTIME_CUDA_POINTWISE_H

#include <map>
#include <string>

#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Adds the makers of all kernels of this family.
void addPointwise(std::map<std::string, Maker> &table);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_POINTWISE_H
