//===- made_kernel.h - Helpers of kernel factories --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_MADE_KERNEL_H
#define MTPLAN_RUNTIME_BACKEND_MADE_KERNEL_H

#include <memory>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

using MadeKernel = std::unique_ptr<Kernel>;

/// Returns whether an operand or a result is f64, in which case everything is
/// computed in double.
bool usesDouble(const KernelSpec &spec);

/// Makes `Class<float>` or `Class<double>`, depending on the tensors.
template <template <typename> class Class, typename Context>
MadeKernel makeOf(const KernelSpec &spec, const Context &context) {
  if (usesDouble(spec))
    return std::make_unique<Class<double>>(spec, context);
  return std::make_unique<Class<float>>(spec, context);
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MADE_KERNEL_H
