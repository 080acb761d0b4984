//===- attention_graph.cpp - Attention as a graph of cuDNN's --------------===//

#include "runtime/cuda/cudnn/attention_graph.h"

#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t typeOf(ElementType type) {
  return type == ElementType::f16 ? fe::DataType_t::HALF
                                  : fe::DataType_t::BFLOAT16;
}

/// [batch, heads, rows, width] to cuDNN; it lies as [batch, rows, heads,
/// width], and a sample may have more rows than are looked at.
struct Layout {
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
  Layout ofQueries() const {
    return laidOut(shape.heads, shape.queries, shape.queries);
  }
  Layout ofKeys() const {
    return laidOut(shape.keyHeads, shape.keys, shape.keyRows);
  }
  Layout laidOut(std::int64_t heads, std::int64_t seen,
                 std::int64_t rows) const {
    return {{shape.batch, heads, seen, shape.width},
            {rows * heads * shape.width, shape.width, heads * shape.width, 1}};
  }
  // As cuDNN wants them: it takes no other steps in its backward graphs.
  Layout ofSums() const {
    return {{shape.batch, shape.heads, shape.queries, 1},
            {shape.heads * shape.queries, shape.queries, 1, 1}};
  }

  static void describe(fe::graph::Tensor_attributes &tensor,
                       AttentionTensor name, const Layout &layout) {
    tensor.set_uid(static_cast<std::int64_t>(name))
        .set_dim(layout.sizes)
        .set_stride(layout.steps);
    if (name == AttentionTensor::sums)
      tensor.set_data_type(fe::DataType_t::FLOAT);
  }
  Tensor given(AttentionTensor name, const Layout &layout) {
    fe::graph::Tensor_attributes tensor;
    describe(tensor, name, layout);
    return graph.tensor(tensor);
  }
  static void made(const Tensor &tensor, AttentionTensor name,
                   const Layout &layout) {
    tensor->set_output(true);
    describe(*tensor, name, layout);
  }
  template <typename Attributes> void setUp(Attributes &attributes) const {
    attributes.set_attn_scale(static_cast<float>(shape.scale));
    // Where there are as many keys as queries both alignments are the same, and
    // the first is taken by more kernels.
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

} // namespace

void addAttention(const AttentionShape &shape, Graph &graph) {
  Writer(shape, graph).forward();
}

void addAttentionGrad(const AttentionShape &shape, Graph &graph) {
  Writer(shape, graph).backward();
}

Taken offer(Graph &graph, cudnnHandle_t handle) {
  const fe::error_t said = ask(graph, handle);
  // Not of the graph: a library that is not installed, say.
  if (said.err_msg.find("PREREQUISITE_MISSING") != std::string::npos)
    throw DeviceError("cuDNN lacks something it needs: " + said.err_msg);
  return {said.is_good(), said.err_msg};
}

} // namespace mtplan::runtime::cuda
