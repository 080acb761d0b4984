//===- fused_attention.cpp - Attention by cuDNN's kernels -----------------===//

#include "runtime/cuda/cudnn/fused_attention.h"

#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "runtime/cuda/cudnn/attention_graphs.h"
#include "runtime/cuda/cudnn/kept_sums.h"

namespace mtplan::runtime::cuda {

namespace {

bool isWanted() {
  const char *given = std::getenv("MTPLAN_CUDNN");
  return !given || std::string_view(given) != "0";
}

class FusedAttention final : public Kernel {
public:
  FusedAttention(const KernelSpec &theSpec, SharedContext theContext,
                 const AttentionShape &theShape,
                 std::shared_ptr<Graph> theGraph)
      : context(std::move(theContext)), spec(theSpec), shape(theShape),
        graph(std::move(theGraph)), isGrad(spec.kernel == "attention_grad"),
        samples(spec.inputs[0].shape[0]) {
    std::int64_t bytes = 0;
    check(graph->get_workspace_size(bytes));
    sumsAt = roundedUp(static_cast<std::size_t>(bytes));
    context->reserve(sumsAt + sized(spec.inputs[0].elements() / shape.width) *
                                  sizeof(float));
  }

  void run(const Invocation &call) override {
    auto *scratch = context->shared<std::byte>();
    auto *sums = reinterpret_cast<float *>(scratch + sumsAt);
    const cudaStream_t stream = streamOf(context);
    if (isGrad) {
      turn(stream, static_cast<const float *>(call.inputs[4]), sums, samples,
           shape.queries, shape.heads);
      if (shape.keys < shape.keyRows) // what nobody sees
        for (std::size_t i : {1, 2})
          MTPLAN_CUDA(cudaMemsetAsync(
              call.outputs[i], 0,
              sized(spec.outputs[i].elements() * bytesOf(shape.type)), stream));
    }
    const cudnnHandle_t handle = context->cudnn->library();
    if (const cudnnStatus_t status = cudnnSetStream(handle, stream);
        status != CUDNN_STATUS_SUCCESS)
      refuse(spec, std::string("cuDNN: ") + cudnnGetErrorString(status));
    for (std::int64_t sample = 0; sample < samples; sample += shape.batch) {
      auto places = placesOf(call, sums, sample);
      check(graph->execute(handle, places, scratch));
    }
    if (!isGrad)
      turn(stream, sums, static_cast<float *>(call.outputs[1]), samples,
           shape.heads, shape.queries);
  }

private:
  /// What the graph is given, from this sample on.
  std::unordered_map<std::int64_t, void *>
  placesOf(const Invocation &call, float *sums, std::int64_t sample) const {
    std::unordered_map<std::int64_t, void *> places;
    const auto place = [&](AttentionTensor name, const void *data,
                           std::int64_t bytes) {
      // cuDNN asks for all alike and writes to results alone.
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

  const SharedContext context;
  const KernelSpec spec;
  const AttentionShape shape; ///< of the samples that go together
  const std::shared_ptr<Graph> graph;
  const bool isGrad;
  const std::int64_t samples; ///< in all
  std::size_t sumsAt = 0;     ///< in the scratch memory, behind cuDNN's own
};

} // namespace

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
