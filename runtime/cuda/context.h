//===- context.h - A rank's device ------------------------------*- C++ -*-===//
//
// Kernels of a rank are queued on the selected one of its streams. Those that
// were prepared for a stream share its scratch memory, which is as large as the
// largest of them asked for; all share the handles of
// cuBLASLt and cuDNN, and what they were asked.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CONTEXT_H
#define MTPLAN_RUNTIME_CUDA_CONTEXT_H

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/cuda/collectives/registration.h"
#include "runtime/cuda/device/matrix_product.h"
#include "runtime/cuda/environment_switch.h"
#include "runtime/cuda/handles.h"

namespace mtplan::runtime::cuda {

struct CudnnGraphs;

class Context {
public:
  Context() : lanes(1) {}

  /// At least so many streams; those that there are stay.
  void open(std::size_t streams) {
    while (lanes.size() < streams)
      lanes.emplace_back();
  }
  void select(std::size_t stream) { selected = stream; }

  const Stream &stream() const { return lanes[selected].stream; }
  const Stream &stream(std::size_t which) const { return lanes[which].stream; }
  std::size_t streams() const { return lanes.size(); }

  void reserve(std::size_t bytes) { lanes[selected].scratch.grow(bytes); }
  template <typename T> T *shared() const {
    return reinterpret_cast<T *>(lanes[selected].scratch.get());
  }

  /// With NCCL, where collectives see it.
  bool registersMemory = registrationIsWanted();
  /// Whether calls of NCCL that are made together are one launch. Ranks must
  /// agree: it deals the work of several calls out otherwise than of each.
  bool joinsCollectives = isSwitchedOn("MTPLAN_JOINT_COLLECTIVES");
  /// Bytes that those are rearranged in, each beside the others: what needs
  /// more is several launches.
  std::size_t roomToJoin = std::size_t{64} << 20;
  MatrixProducts products;
  /// Made by the first kernel that asks cuDNN.
  std::shared_ptr<CudnnGraphs> cudnn;

private:
  struct Lane {
    Stream stream;
    DeviceMemory scratch;
  };
  std::vector<Lane> lanes;
  std::size_t selected = 0;
};

using SharedContext = std::shared_ptr<Context>;

/// What a kernel looks up, put there when it is prepared.
template <typename T>
DeviceMemory uploaded(const Context &context, const std::vector<T> &values) {
  const std::size_t bytes = values.size() * sizeof(T);
  DeviceMemory there(bytes);
  MTPLAN_CUDA(cudaMemcpyAsync(there.get(), values.data(), bytes,
                              cudaMemcpyHostToDevice, context.stream().get()));
  context.stream().synchronise();
  return there;
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CONTEXT_H
