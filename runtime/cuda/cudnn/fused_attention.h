//===- fused_attention.h - Attention by cuDNN's kernels ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime/backend/kernel.h"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Describes attention of queries [batch, queries, heads, width] with keys and
/// values [batch, keyRows, keyHeads, width]. Only the first `keys` keys of a
/// sample are used. If `causal`, query s attends only to keys k <= s + keys -
/// queries.
struct AttentionShape {
  std::int64_t batch, queries, heads, keys, keyRows, keyHeads, width;
  bool causal;
  double scale;     ///< multiplies scores
  ElementType type; ///< type of all tensors except the log-sum-exps (f32)

  bool operator==(const AttentionShape &) const = default;
};

/// Returns the shape of an `attention` or `attention_grad`, or none if the
/// kernel has unsupported types, dropout, a bias, a soft cap, or a causal mask
/// and queries after the last key.
std::optional<AttentionShape> attentionShapeOf(const KernelSpec &spec);

/// Returns the shape with the largest divisor of shape.batch as its batch size
/// for which `takes` is true, or none.
std::optional<AttentionShape>
mostSamples(const AttentionShape &shape,
            const std::function<bool(const AttentionShape &)> &takes);

/// Makes the kernel of an `attention` or `attention_grad`. Returns null if
/// cuDNN is missing, is disabled (MTPLAN_CUDNN=0), does not work, or does not
/// support this attention on the device. cuDNN is used for attention in 16-bit
/// types without dropout, bias and soft cap; the kernels of attention.cuh
/// compute all other cases. Dropout is excluded because cuDNN's dropout masks
/// would depend on the sharding.
MadeKernel makeFusedAttention(const KernelSpec &spec,
                              const SharedContext &context);

/// Returns cudnnGetVersion(), or 0 if cuDNN is missing or disabled.
std::size_t fusedAttentionVersion();

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H
