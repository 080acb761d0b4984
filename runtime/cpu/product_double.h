//===- product_double.h - Einsums in double precision -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_PRODUCT_DOUBLE_H
#define MTPLAN_RUNTIME_CPU_PRODUCT_DOUBLE_H

#include "runtime/backend/product_shape.h"
#include "runtime/cpu/families.h"

namespace mtplan::runtime::cpu {

/// oneDNN has no double precision.
MadeKernel makeDoubleProduct(const KernelSpec &spec, const ProductShape &shape,
                             const SharedContext &context);

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_PRODUCT_DOUBLE_H
