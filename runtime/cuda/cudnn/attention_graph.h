//===- attention_graph.h - Attention as cuDNN graphs ------------*- C++ -*-===//

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

/// Identifies the tensors of a graph. `sums` is the log-sum-exp of each row,
/// [batch][heads][queries].
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

/// A graph can be built for a mere description of a device, so tests need no
/// GPU.
using Graph = cudnn_frontend::graph::Graph;

/// Adds attention to a new graph: query, key, value -> result, sums.
void addAttention(const AttentionShape &shape, Graph &graph);
/// Adds the gradient of attention to a new graph, by a deterministic algorithm:
/// query, key, value, result, sums, above -> queryGrad, keyGrad, valueGrad.
void addAttentionGrad(const AttentionShape &shape, Graph &graph);

/// Limits a graph's workspace in bytes. The planner does not count this memory;
/// the workspace must fit into the memory that machine files reserve beyond the
/// context (reserved_GiB minus reserved_context_GiB). cuDNN's deterministic
/// gradient stores two bytes per score, so its workspace grows with the square
/// of the sequence length.
inline constexpr std::int64_t kMostScratch = std::int64_t{1} << 30;

struct Taken {
  bool taken = false;
  std::string why; ///< cuDNN's reason if `taken` is false
};

/// Returns whether cuDNN has a kernel for the graph that needs at most
/// kMostScratch bytes of workspace.
/// \param handle  null if the graph contains a description of the device
/// \throws DeviceError if cuDNN lacks a library that it needs
Taken offer(Graph &graph, cudnnHandle_t handle);

/// Holds the graphs of a rank; layers with equal shapes share a graph. If cuDNN
/// itself fails, the kernels of attention.cuh are used, and one warning is
/// printed.
struct CudnnGraphs {
  /// Makes a graph, or returns null if cuDNN does not support it.
  /// \throws DeviceError if cuDNN does not work or cannot build the graph
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
    AttentionShape together;      ///< shape of one execution, which may have
                                  ///< only some samples
    std::shared_ptr<Graph> graph; ///< null: cuDNN is not used
  };
  /// Returns the graph of a shape, which the first call builds. A call takes
  /// time linear in the number of shapes.
  Built find(const AttentionShape &shape, bool isGrad);

  /// Returns the handle of cuDNN.
  /// \throws DeviceError if cuDNN cannot be initialized
  cudnnHandle_t library();

private:
  Built built(const AttentionShape &shape, bool isGrad);
  void warn(const char *why);

  const Make make;
  cudnnHandle_t handle = nullptr; ///< null until library() is called
  bool hasWarned = false;
  std::vector<Built> all;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPH_H
