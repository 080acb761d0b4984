//===- fused_attention.cpp - Attention by cuDNN's kernels -----------------===//

#include "runtime/cuda/cudnn/fused_attention.h"

#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "runtime/backend/signature.h"
#include "runtime/cuda/cudnn/attention_graph.h"

namespace mtplan::runtime::cuda {
namespace {

bool areOfType(const std::vector<TensorView> &tensors, ElementType type,
               const TensorView &sums) {
  for (const TensorView &one : tensors)
    if (one.type != (&one == &sums ? ElementType::f32 : type))
      return false;
  return true;
}

bool isWanted() {
  const char *given = std::getenv("MTPLAN_CUDNN");
  return !given || std::string_view(given) != "0";
}

class FusedAttention final : public DeviceKernel {
public:
  FusedAttention(const KernelSpec &theSpec, SharedContext theContext,
                 const AttentionShape &theShape,
                 std::shared_ptr<Graph> theGraph)
      : DeviceKernel(theSpec, std::move(theContext)), shape(theShape),
        graph(std::move(theGraph)), isGrad(spec.kernel == "attention_grad"),
        samples(spec.inputs[0].shape[0]) {
    std::int64_t bytes = 0;
    check(graph->get_workspace_size(bytes));
    sumsAt = roundedUp(static_cast<std::size_t>(bytes));
    context->reserve(sumsAt + sized(spec.inputs[0].elements() / shape.width) *
                                  sizeof(float));
  }

  void run(const Invocation &call) override {
    auto *workspace = context->shared<std::byte>();
    auto *sums = reinterpret_cast<float *>(workspace + sumsAt);
    if (isGrad) {
      transposeRows(stream(), static_cast<const float *>(call.inputs[4]), sums,
                    samples, shape.queries, shape.heads);
      if (shape.keys < shape.keyRows) // no query attends to the later keys
        for (std::size_t i : {1, 2})
          MTPLAN_CUDA(cudaMemsetAsync(
              call.outputs[i], 0,
              sized(spec.outputs[i].elements() * bytesOf(shape.type)),
              stream()));
    }
    const cudnnHandle_t handle = context->cudnn->library();
    if (const cudnnStatus_t status = cudnnSetStream(handle, stream());
        status != CUDNN_STATUS_SUCCESS)
      refuse(spec, std::string("cuDNN: ") + cudnnGetErrorString(status));
    for (std::int64_t sample = 0; sample < samples; sample += shape.batch) {
      auto places = placesOf(call, sums, sample);
      check(graph->execute(handle, places, workspace));
    }
    if (!isGrad)
      transposeRows(stream(), sums, static_cast<float *>(call.outputs[1]),
                    samples, shape.heads, shape.queries);
  }

private:
  /// Returns the addresses of the graph's tensors for the execution that begins
  /// with `sample`.
  std::unordered_map<std::int64_t, void *>
  placesOf(const Invocation &call, float *sums, std::int64_t sample) const {
    std::unordered_map<std::int64_t, void *> places;
    const auto place = [&](AttentionTensor name, const void *data,
                           std::int64_t bytes) {
      // cuDNN's interface has mutable pointers to all tensors, but only results
      // are written.
      places[static_cast<std::int64_t>(name)] = const_cast<std::byte *>(
          static_cast<const std::byte *>(data) + sample * bytes);
    };
    const std::int64_t rows = shape.queries * shape.heads;
    const std::int64_t query = rows * shape.width * bytesOf(shape.type);
    const std::int64_t key =
        shape.keyRows * shape.keyHeads * shape.width * bytesOf(shape.type);
    place(AttentionTensor::query, call.inputs[0], query);
    place(AttentionTensor::key, call.inputs[1], key);
    place(AttentionTensor::value, call.inputs[2], key);
    place(AttentionTensor::result, isGrad ? call.inputs[3] : call.outputs[0],
          query);
    place(AttentionTensor::sums, sums, rows * bytesOf(ElementType::f32));
    if (!isGrad)
      return places;
    place(AttentionTensor::above, call.inputs[5], query);
    place(AttentionTensor::queryGrad, call.outputs[0], query);
    place(AttentionTensor::keyGrad, call.outputs[1], key);
    place(AttentionTensor::valueGrad, call.outputs[2], key);
    return places;
  }

  static std::size_t sized(std::int64_t number) {
    return static_cast<std::size_t>(number);
  }
  void check(const cudnn_frontend::error_t &said) const {
    if (said.is_bad())
      refuse(spec, "cuDNN: " + said.err_msg);
  }

  const AttentionShape shape; ///< shape of one execution
  const std::shared_ptr<Graph> graph;
  const bool isGrad;
  const std::int64_t samples; ///< batch size of all executions
  std::size_t sumsAt = 0;     ///< offset of the log-sum-exps
};

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
  // With a causal mask, the last query attends to the keys up to its own global
  // position.
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

MadeKernel makeFusedAttention(const KernelSpec &spec,
                              const SharedContext &context) {
  const std::optional<AttentionShape> shape = attentionShapeOf(spec);
  if (!shape || !isWanted())
    return nullptr;
  if (!context->cudnn)
    context->cudnn = std::make_shared<CudnnGraphs>();
  const CudnnGraphs::Built found =
      context->cudnn->find(*shape, spec.kernel == "attention_grad");
  if (!found.graph)
    return nullptr;
  return std::make_unique<FusedAttention>(spec, context, found.together,
                                          found.graph);
}

std::size_t fusedAttentionVersion() {
  return isWanted() ? cudnnGetVersion() : 0;
}

} // namespace mtplan::runtime::cuda
