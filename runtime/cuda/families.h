//===- families.h - Kernels by family ---------------------------*- C++ -*-===//
//
// Each makes a kernel for a spec that checkSpec has seen.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_FAMILIES_H
#define MTPLAN_RUNTIME_CUDA_FAMILIES_H

#include <algorithm>
#include <memory>

#include "runtime/backend/signature.h"
#include "runtime/cuda/context.h"

namespace mtplan::runtime::cuda {

using MadeKernel = std::unique_ptr<Kernel>;
using Maker = MadeKernel (*)(const KernelSpec &spec,
                             const SharedContext &context);

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context);
MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeNorm(const KernelSpec &spec, const SharedContext &context);

/// Whether a tensor is f64: then all is computed so.
inline bool usesDouble(const KernelSpec &spec) {
  auto isDouble = [](const TensorView &view) {
    return view.type == ElementType::f64;
  };
  return std::ranges::any_of(spec.inputs, isDouble) ||
         std::ranges::any_of(spec.outputs, isDouble);
}

/// Makes `Class<float>` or `Class<double>`, whichever the tensors ask for.
template <template <typename> class Class>
MadeKernel makeOf(const KernelSpec &spec, const SharedContext &context) {
  if (usesDouble(spec))
    return std::make_unique<Class<double>>(spec, context);
  return std::make_unique<Class<float>>(spec, context);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_FAMILIES_H
