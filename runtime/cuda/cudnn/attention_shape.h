//===- attention_shape.h - What attention cuDNN is asked for ----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_SHAPE_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_SHAPE_H

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime::cuda {

/// Attention without dropout and bias, of queries [batch, queries, heads,
/// width] and keys and values [batch, keyRows, keyHeads, width], of which the
/// first `keys` of each sample are looked at. Key `k` is seen by query `s` if
/// not `causal`, or k <= s + keys - queries.
struct AttentionShape {
  std::int64_t batch, queries, heads, keys, keyRows, keyHeads, width;
  bool causal;
  double scale;     ///< of scores
  ElementType type; ///< of all tensors but the sums, which are f32

  bool operator==(const AttentionShape &) const = default;
};

/// Of `attention` or `attention_grad`. None: in other types than cuDNN's
/// kernels have, or with dropout or a bias.
std::optional<AttentionShape> attentionShapeOf(const KernelSpec &spec);

/// The same of as many samples at once as are taken, so that the batch is a
/// multiple of them. None: not even one is.
std::optional<AttentionShape>
mostSamples(const AttentionShape &shape,
            const std::function<bool(const AttentionShape &)> &takes);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_SHAPE_H
