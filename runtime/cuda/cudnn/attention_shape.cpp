//===- attention_shape.cpp - What attention cuDNN is asked for ------------===//

#include "runtime/cuda/cudnn/attention_shape.h"

#include "runtime/backend/signature.h"

namespace mtplan::runtime::cuda {

namespace {

bool areOfType(const std::vector<TensorView> &tensors, ElementType type,
               const TensorView &sums) {
  for (const TensorView &one : tensors)
    if (one.type != (&one == &sums ? ElementType::f32 : type))
      return false;
  return true;
}

} // namespace

std::optional<AttentionShape> attentionShapeOf(const KernelSpec &spec) {
  const bool isGrad = spec.kernel == "attention_grad";
  const TensorView &query = spec.inputs[0], &key = spec.inputs[1];
  const TensorView &sums = isGrad ? spec.inputs[4] : spec.outputs[1];
  if (spec.inputs.size() > (isGrad ? 6 : 3) || spec.number("rate", 0.0) > 0.0 ||
      spec.find("softcap"))
    return std::nullopt;
  if (query.type != ElementType::bf16 && query.type != ElementType::f16)
    return std::nullopt;
  if (!areOfType(spec.inputs, query.type, sums) ||
      !areOfType(spec.outputs, query.type, sums))
    return std::nullopt;
  AttentionShape shape;
  shape.width = spec.integer("head_dim", 1);
  shape.batch = query.shape[0];
  shape.queries = query.shape[1];
  shape.heads = query.shape[2] / shape.width;
  shape.keyRows = key.shape[1];
  shape.keyHeads = key.shape[2] / shape.width;
  shape.causal = spec.integer("causal", 0) != 0;
  shape.scale = spec.number("scale", 1.0);
  shape.type = query.type;
  // The last query sees keys up to its own place.
  shape.keys =
      shape.causal ? pieceOf(query, 1).offset + shape.queries : shape.keyRows;
  if (shape.keys > shape.keyRows)
    return std::nullopt;
  return shape;
}

std::optional<AttentionShape>
mostSamples(const AttentionShape &shape,
            const std::function<bool(const AttentionShape &)> &takes) {
  for (std::int64_t parts = 1; parts <= shape.batch; ++parts) {
    if (shape.batch % parts != 0)
      continue;
    AttentionShape some = shape;
    some.batch = shape.batch / parts;
    if (takes(some))
      return some;
  }
  return std::nullopt;
}

} // namespace mtplan::runtime::cuda
