//===- fused_attention.h - Attention by cuDNN's kernels ---------*- C++ -*-===//
//
// In 16-bit types, without dropout and bias: masks are drawn by mtplan alike on
// every partitioning, which cuDNN cannot do. What it does not take is done by
// our own kernels.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H

#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Of `attention` or `attention_grad`. Null: cuDNN is not there, was not
/// wanted (MTPLAN_CUDNN=0), does not work, or has no kernel for this on this
/// device.
MadeKernel makeFusedAttention(const KernelSpec &spec,
                              const SharedContext &context);

/// cuDNN's, as its cudnnGetVersion says it; 0 if it is not there or not wanted.
std::size_t fusedAttentionVersion();

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H
