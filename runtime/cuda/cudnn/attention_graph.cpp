//===- attention_graph.cpp - Attention as cuDNN graphs --------------------===//

#include "runtime/cuda/cudnn/attention_graph.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t typeOf(ElementType type) {
  return type == ElementType::f16 ? fe::DataType_t::HALF
                                  : fe::DataType_t::BFLOAT16;
}

/// Holds the sizes and strides of a tensor [batch, heads, rows, width] for
/// cuDNN. The memory order is [batch, rows, heads, width]. A sample may have
/// more rows in memory than the graph uses.
struct TensorLayout {
  std::vector<std::int64_t> sizes, steps;
};

class Writer {
public:
  Writer(const AttentionShape &theShape, Graph &theGraph)
      : shape(theShape), graph(theGraph) {
    graph.set_io_data_type(typeOf(shape.type))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  void forward();
  void backward();

private:
  TensorLayout ofQueries() const {
    return laidOut(shape.heads, shape.queries, shape.queries);
  }
  TensorLayout ofKeys() const {
    return laidOut(shape.keyHeads, shape.keys, shape.keyRows);
  }
  TensorLayout laidOut(std::int64_t heads, std::int64_t seen,
                       std::int64_t rows) const {
    return {{shape.batch, heads, seen, shape.width},
            {rows * heads * shape.width, shape.width, heads * shape.width, 1}};
  }
  // Returns the layout of the log-sum-exps. cuDNN supports no other strides in
  // backward graphs.
  TensorLayout ofSums() const {
    return {{shape.batch, shape.heads, shape.queries, 1},
            {shape.heads * shape.queries, shape.queries, 1, 1}};
  }

  static void describe(fe::graph::Tensor_attributes &tensor,
                       AttentionTensor name, const TensorLayout &layout) {
    tensor.set_uid(static_cast<std::int64_t>(name))
        .set_dim(layout.sizes)
        .set_stride(layout.steps);
    if (name == AttentionTensor::sums)
      tensor.set_data_type(fe::DataType_t::FLOAT);
  }
  Tensor given(AttentionTensor name, const TensorLayout &layout) {
    fe::graph::Tensor_attributes tensor;
    describe(tensor, name, layout);
    return graph.tensor(tensor);
  }
  static void made(const Tensor &tensor, AttentionTensor name,
                   const TensorLayout &layout) {
    tensor->set_output(true);
    describe(*tensor, name, layout);
  }
  template <typename Attributes> void setUp(Attributes &attributes) const {
    attributes.set_attn_scale(static_cast<float>(shape.scale));
    // If there are as many keys as queries, both alignments of the causal mask
    // are equivalent, and more cuDNN kernels support TOP_LEFT.
    if (shape.causal)
      attributes
          .set_diagonal_alignment(shape.keys == shape.queries
                                      ? fe::DiagonalAlignment_t::TOP_LEFT
                                      : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
          .set_diagonal_band_right_bound(0);
  }

  const AttentionShape &shape;
  Graph &graph;
};

void Writer::forward() {
  fe::graph::SDPA_attributes attributes;
  attributes.set_name("attention").set_generate_stats(true);
  setUp(attributes);
  const auto [result, sums] =
      graph.sdpa(given(AttentionTensor::query, ofQueries()),
                 given(AttentionTensor::key, ofKeys()),
                 given(AttentionTensor::value, ofKeys()), attributes);
  made(result, AttentionTensor::result, ofQueries());
  made(sums, AttentionTensor::sums, ofSums());
}

void Writer::backward() {
  fe::graph::SDPA_backward_attributes attributes;
  attributes.set_name("attention_grad").set_deterministic_algorithm(true);
  setUp(attributes);
  const auto [query, key, value] =
      graph.sdpa_backward(given(AttentionTensor::query, ofQueries()),
                          given(AttentionTensor::key, ofKeys()),
                          given(AttentionTensor::value, ofKeys()),
                          given(AttentionTensor::result, ofQueries()),
                          given(AttentionTensor::above, ofQueries()),
                          given(AttentionTensor::sums, ofSums()), attributes);
  made(query, AttentionTensor::queryGrad, ofQueries());
  made(key, AttentionTensor::keyGrad, ofKeys());
  made(value, AttentionTensor::valueGrad, ofKeys());
}

fe::error_t ask(Graph &graph, cudnnHandle_t handle) {
  if (fe::error_t said = graph.validate(); said.is_bad())
    return said;
  if (fe::error_t said = handle ? graph.build_operation_graph(handle)
                                : graph.build_operation_graph();
      said.is_bad())
    return said;
  if (fe::error_t said = graph.create_execution_plans({fe::HeurMode_t::A});
      said.is_bad())
    return said;
  graph.deselect_workspace_greater_than(kMostScratch);
  return graph.check_support();
}

std::shared_ptr<Graph> build(CudnnGraphs &graphs, const AttentionShape &shape,
                             bool isGrad) {
  auto graph = std::make_shared<Graph>();
  (isGrad ? addAttentionGrad : addAttention)(shape, *graph);
  if (!offer(*graph, graphs.library()).taken)
    return nullptr;
  if (const cudnn_frontend::error_t said = graph->build_plans(); said.is_bad())
    throw DeviceError("cuDNN supports attention of these shapes, but cannot "
                      "build it: " +
                      said.err_msg);
  return graph;
}

} // namespace

void addAttention(const AttentionShape &shape, Graph &graph) {
  Writer(shape, graph).forward();
}

void addAttentionGrad(const AttentionShape &shape, Graph &graph) {
  Writer(shape, graph).backward();
}

Taken offer(Graph &graph, cudnnHandle_t handle) {
  const fe::error_t said = ask(graph, handle);
  // PREREQUISITE_MISSING means that a library is not installed, and says
  // nothing about the graph.
  if (said.err_msg.find("PREREQUISITE_MISSING") != std::string::npos)
    throw DeviceError("cuDNN lacks a library that it needs: " + said.err_msg);
  return {said.is_good(), said.err_msg};
}

CudnnGraphs::CudnnGraphs(Make theMake) : make(std::move(theMake)) {}
CudnnGraphs::CudnnGraphs() : CudnnGraphs(build) {}
CudnnGraphs::~CudnnGraphs() {
  if (handle)
    cudnnDestroy(handle);
}

cudnnHandle_t CudnnGraphs::library() {
  if (handle)
    return handle;
  if (const cudnnStatus_t status = cudnnCreate(&handle);
      status != CUDNN_STATUS_SUCCESS) {
    handle = nullptr;
    throw DeviceError(std::string("cuDNN does not start: ") +
                      cudnnGetErrorString(status));
  }
  return handle;
}

CudnnGraphs::Built CudnnGraphs::find(const AttentionShape &shape, bool isGrad) {
  const auto found = std::ranges::find_if(all, [&](const Built &one) {
    return one.shape == shape && one.isGrad == isGrad;
  });
  return found != all.end() ? *found : all.emplace_back(built(shape, isGrad));
}

CudnnGraphs::Built CudnnGraphs::built(const AttentionShape &shape,
                                      bool isGrad) {
  Built one{shape, isGrad, shape, nullptr};
  // cuDNN requires 16-byte alignment of all tensors. If an execution computes
  // only some samples, the log-sum-exps of the next execution must be aligned,
  // too.
  constexpr std::int64_t kSumsTogether = 16 / sizeof(float);
  try {
    if (const auto some = mostSamples(shape, [&](const AttentionShape &part) {
          if (part.batch < shape.batch &&
              part.batch * part.heads * part.queries % kSumsTogether != 0)
            return false;
          one.graph = make(*this, part, isGrad);
          return one.graph != nullptr;
        }))
      one.together = *some;
  } catch (const DeviceError &error) {
    warn(error.what());
  }
  return one;
}

void CudnnGraphs::warn(const char *why) {
  if (!std::exchange(hasWarned, true))
    std::fprintf(stderr,
                 "warning: %s: attention uses mtplan's own kernels, as with "
                 "MTPLAN_CUDNN=0\n",
                 why);
}

} // namespace mtplan::runtime::cuda
