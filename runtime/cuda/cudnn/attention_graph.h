//===- attention_graph.h - Attention as graphs of cuDNN ---------*- C++ -*-===//
//
// Graphs need cuDNN's C++ frontend, which only this folder includes. They can
// be described without a device: tests ask cuDNN about devices that do not
// exist.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cudnn_frontend.h>

#include "runtime/cuda/cudnn/fused_attention.h"

namespace mtplan::runtime::cuda {

/// Identifies a graph's tensors when it runs. `sums` are the log-sum-exps of
/// rows, [batch, heads, queries].
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

/// Adds to a new graph: query, key, value -> result, sums.
void addAttention(const AttentionShape &shape, Graph &graph);
/// Adds to a new graph: query, key, value, result, sums, above -> queryGrad,
/// keyGrad, valueGrad, by a deterministic algorithm.
void addAttentionGrad(const AttentionShape &shape, Graph &graph);

/// The bytes that a graph may use beside a plan's memory: about the reserve of
/// machine files without contexts. cuDNN's deterministic gradients store two
/// bytes for each score, which grow with the square of the sequence.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 30;

/// The answer of cuDNN to a graph.
struct Taken {
  bool taken = false;
  std::string why; ///< cuDNN's reason if it does not take the graph
};

/// Asks cuDNN whether it has a kernel for the graph within kMostScratch.
/// \param handle  null if the graph describes a device instead
/// \throws DeviceError if cuDNN lacks a library that it needs to answer
Taken offer(Graph &graph, cudnnHandle_t handle);

/// The graphs of a rank; layers with equal shapes share one. If cuDNN itself
/// fails, a run loses its fastest attention but goes on: our own kernels
/// replace it, with one warning.
struct CudnnGraphs {
  /// Makes a graph; null if cuDNN does not take it.
  /// \throws DeviceError if cuDNN does not work, or cannot build the graph
  using Make = std::function<std::shared_ptr<Graph>(
      CudnnGraphs &graphs, const AttentionShape &shape, bool isGrad)>;

  explicit CudnnGraphs(Make theMake);
  CudnnGraphs();
  CudnnGraphs(const CudnnGraphs &) = delete;
  CudnnGraphs &operator=(const CudnnGraphs &) = delete;
  ~CudnnGraphs();

  struct Built {
    AttentionShape shape;
    bool isGrad;
    AttentionShape together;      ///< the samples of one execution
    std::shared_ptr<Graph> graph; ///< null: our own kernels are used
  };
  /// Returns a graph, which is built the first time. O(shapes)
  Built find(const AttentionShape &shape, bool isGrad);

  /// Returns the handle of cuDNN.
  /// \throws DeviceError if cuDNN does not start
  cudnnHandle_t library();

private:
  Built built(const AttentionShape &shape, bool isGrad);
  void warn(const char *why);

  const Make make;
  cudnnHandle_t handle = nullptr; ///< null until it is asked for
  bool hasWarned = false;
  std::vector<Built> all;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H
