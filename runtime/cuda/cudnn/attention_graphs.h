//===- attention_graphs.h - The graphs that cuDNN has built -----*- C++ -*-===//
//
// Of one rank: layers share what is alike. What goes wrong with cuDNN itself
// costs a run its fastest attention and not the run: our own kernels do it, and
// it is said once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPHS_H
#define MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPHS_H

#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/cudnn/attention_graph.h"

namespace mtplan::runtime::cuda {

struct CudnnGraphs {
  /// Null: cuDNN does not take it.
  /// \throws DeviceError if it cannot work, or build what it takes
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
    AttentionShape together;      ///< of the samples that go together
    std::shared_ptr<Graph> graph; ///< null: for our own kernels
  };
  /// Asks the first time. O(shapes)
  Built find(const AttentionShape &shape, bool isGrad);

  /// \throws DeviceError if cuDNN does not start
  cudnnHandle_t library();

private:
  Built built(const AttentionShape &shape, bool isGrad);
  void warn(const char *why);

  const Make make;
  cudnnHandle_t handle = nullptr; ///< null: not asked for yet
  bool hasWarned = false;
  std::vector<Built> all;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CUDNN_ATTENTION_GRAPHS_H
