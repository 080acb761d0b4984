//===- families.h - Kernel factories by family ------------------*- C++ -*-===//
//
// Each factory makes a kernel for a spec that checkSpec has accepted, or
// returns null. If a factory returns null, the backend uses the reference
// kernel, or two separate kernels for a fused pair.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_FAMILIES_H
#define MTPLAN_RUNTIME_CPU_FAMILIES_H

#include <map>
#include <memory>
#include <string>

#include "runtime/backend/kernel.h"
#include "runtime/backend/signature.h"
#include "runtime/cpu/context.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

using Maker = MadeKernel (*)(const KernelSpec &spec,
                             const SharedContext &context);

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeSum(const KernelSpec &spec, const SharedContext &context);
/// Returns null if the consumer that `then` names cannot be fused.
MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context);
/// Returns null if the two kernels compute in different precisions.
MadeKernel makeFollowedSum(const KernelSpec &spec,
                           const SharedContext &context);
MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeNorm(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeAttention(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeAttentionGrad(const KernelSpec &spec,
                             const SharedContext &context);
MadeKernel makeRope(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeEmbedding(const KernelSpec &spec, const SharedContext &context);
MadeKernel makePosition(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeVocab(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeTokenLoss(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context);

/// Makes an einsum in double precision, which oneDNN does not support.
MadeKernel makeDoubleProduct(const KernelSpec &spec,
                             const SharedContext &context);

/// Adds the factories of all pointwise kernels to `table`, by kernel name.
void addPointwise(std::map<std::string, Maker> &table);
} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_FAMILIES_H
