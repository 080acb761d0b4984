//===- fused_attention.h - Attention by cuDNN's kernels ---------*- C++ -*-===//
//
// cuDNN computes attention in 16-bit types, without dropout and bias: it cannot
// draw masks that are equal in every partitioning. Our own kernels compute the
// rest.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime/backend/kernel.h"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

/// Attention without dropout and bias, of queries [batch, queries, heads,
/// width] and keys and values [batch, keyRows, keyHeads, width], of which the
/// first `keys` of each sample are used. Query `s` sees key `k` if not
/// `causal`, or k <= s + keys - queries.
struct AttentionShape {
  std::int64_t batch, queries, heads, keys, keyRows, keyHeads, width;
  bool causal;
  double scale;     ///< multiplies scores
  ElementType type; ///< of all tensors except the sums, which are f32

  bool operator==(const AttentionShape &) const = default;
};

/// Returns the shape of an `attention` or `attention_grad`; none if it has
/// other types than cuDNN's kernels, dropout or a bias.
std::optional<AttentionShape> attentionShapeOf(const KernelSpec &spec);

/// Returns the shape with the largest divisor of the batch that `takes`
/// accepts; none if it does not even accept one sample.
std::optional<AttentionShape>
mostSamples(const AttentionShape &shape,
            const std::function<bool(const AttentionShape &)> &takes);

/// Makes the kernel of an `attention` or `attention_grad`; null if cuDNN is
/// missing, switched off (MTPLAN_CUDNN=0), does not work, or has no kernel for
/// it on this device.
MadeKernel makeFusedAttention(const KernelSpec &spec,
                              const SharedContext &context);

/// Returns cudnnGetVersion(); 0 if cuDNN is missing or switched off.
std::size_t fusedAttentionVersion();

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_FUSED_ATTENTION_H
