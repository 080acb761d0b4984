//===- families.h - Kernels by family ---------------------------*- C++ -*-===//
//
// Each makes a kernel for a spec that checkSpec has seen.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_FAMILIES_H
#define MTPLAN_RUNTIME_CUDA_FAMILIES_H

#include <memory>

#include "runtime/backend/made_kernel.h"
#include "runtime/backend/signature.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

using Maker = MadeKernel (*)(const KernelSpec &spec,
                             const SharedContext &context);

MadeKernel makeGradientFactor(const KernelSpec &spec,
                              const SharedContext &context);
MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeAttention(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeAttentionGrad(const KernelSpec &spec,
                             const SharedContext &context);
MadeKernel makeBalance(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeEmbedding(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeExperts(const KernelSpec &spec, const SharedContext &context);
/// With `then`; null: there is none that does both at once.
MadeKernel makeFollowedDropout(const KernelSpec &spec,
                               const SharedContext &context);
MadeKernel makeFollowedNormGrad(const KernelSpec &spec,
                                const SharedContext &context);
MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context);
MadeKernel makeFollowedSum(const KernelSpec &spec,
                           const SharedContext &context);
MadeKernel makeGate(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeLetterSum(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeLoss(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeNorm(const KernelSpec &spec, const SharedContext &context);
MadeKernel makePointwise(const KernelSpec &spec, const SharedContext &context);
MadeKernel makePosition(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeRope(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeSlots(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeSoftmax(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context);
MadeKernel makeSum(const KernelSpec &spec, const SharedContext &context);

/// Of runs that Backend::prepareTogether may be given, at least one; null: they
/// cannot be one kernel.
using ManyMaker = MadeKernel (*)(const std::vector<FixedRun> &runs,
                                 const SharedContext &context);

MadeKernel makeAdamwOfMany(const std::vector<FixedRun> &runs,
                           const SharedContext &context);
MadeKernel makeSquareSumOfMany(const std::vector<FixedRun> &runs,
                               const SharedContext &context);

/// As Backend::prepareEven has it.
MadeKernel makeEvenProducts(const KernelSpec &spec, const EvenRuns &runs,
                            const SharedContext &context);

/// Where kernels are queued now.
inline cudaStream_t streamOf(const SharedContext &context) {
  return context->stream().get();
}

/// Operand or result `i` of a call.
inline Operand operandOf(const KernelSpec &spec, const Invocation &call,
                         std::size_t i) {
  return {call.inputs[i], spec.inputs[i].type};
}
inline Result resultOf(const KernelSpec &spec, const Invocation &call,
                       std::size_t i) {
  return {call.outputs[i], spec.outputs[i].type};
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_FAMILIES_H
