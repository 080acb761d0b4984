//===- made_kernel.h - What families of kernels share -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_MADE_KERNEL_H
#define MTPLAN_RUNTIME_BACKEND_MADE_KERNEL_H

#include <memory>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

using MadeKernel = std::unique_ptr<Kernel>;

/// Whether an operand or a result is f64: then all is computed so.
bool usesDouble(const KernelSpec &spec);

/// Makes `Class<float>` or `Class<double>`, whichever the tensors ask for.
template <template <typename> class Class, typename Context>
MadeKernel makeOf(const KernelSpec &spec, const Context &context) {
  if (usesDouble(spec))
    return std::make_unique<Class<double>>(spec, context);
  return std::make_unique<Class<float>>(spec, context);
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MADE_KERNEL_H
