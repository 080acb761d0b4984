//===- attention_graph.h - Attention as a graph of cuDNN's ------*- C++ -*-===//
//
// What is told to cuDNN, without a device: tests ask it about devices that are
// not there. Needs cuDNN's C++ frontend; only this folder includes it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H

#include <cstdint>
#include <string>

#include <cudnn_frontend.h>

#include "runtime/cuda/cudnn/attention_shape.h"

namespace mtplan::runtime::cuda {

/// By which a graph's tensors are given when it runs. `sums` are logarithms of
/// the sums of a row's exponentials, [batch, heads, queries].
enum class AttentionTensor : std::int64_t {
  query = 1,
  key,
  value,
  result,
  sums,
  above, ///< gradient of the result
  queryGrad,
  keyGrad,
  valueGrad
};

using Graph = cudnn_frontend::graph::Graph;

/// To a new graph: query, key, value -> result, sums.
void addAttention(const AttentionShape &shape, Graph &graph);
/// To a new graph: query, key, value, result, sums, above -> queryGrad,
/// keyGrad, valueGrad; the same bits every time.
void addAttentionGrad(const AttentionShape &shape, Graph &graph);

/// Bytes that a graph may take beside a plan's memory: about what machine files
/// reserve less contexts. cuDNN's deterministic gradients store two bytes for
/// each score, which grow with the square of the sequence.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 30;

/// What became of a graph that cuDNN was asked to take.
struct Taken {
  bool taken = false;
  std::string why; ///< if not: what it says of the graph
};

/// Asks for kernels, and whether one of them takes the graph in kMostScratch.
/// \param handle  null where the graph was told of a device instead
/// \throws DeviceError if cuDNN lacks what it needs to say so
Taken offer(Graph &graph, cudnnHandle_t handle);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H
