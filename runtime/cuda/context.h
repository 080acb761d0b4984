//===- context.h - The state of a rank's device -----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_CONTEXT_H
#define MTPLAN_RUNTIME_CUDA_CONTEXT_H

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/collectives/registration.h"
#include "runtime/cuda/device/matrix_product.h"
#include "runtime/cuda/handles.h"

namespace mtplan::runtime::cuda {

struct CudnnGraphs;

/// Returns whether an environment variable is 1 or not set.
/// \throws std::runtime_error if it is set, but neither 0 nor 1
inline bool isSwitchedOn(const char *name) {
  const char *given = std::getenv(name);
  const std::string_view wanted = given ? given : "1";
  if (wanted != "0" && wanted != "1")
    throw std::runtime_error(std::string(name) + " is \"" +
                             std::string(wanted) + "\": must be 0 or 1");
  return wanted == "1";
}

/// Holds the state of a rank's device. Kernels are queued on the selected
/// stream. Kernels prepared for one stream share its scratch memory, which has
/// the size of the largest request. All kernels share the library handles and
/// the algorithms that cuBLASLt and cuDNN have chosen.
class Context {
public:
  Context() : lanes(1) {}

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

  bool registersMemory = registrationIsWanted();
  /// Says whether grouped collectives run as one NCCL launch. The setting must
  /// be equal on all ranks, because NCCL divides the work of grouped calls
  /// differently than the work of single calls.
  bool joinsCollectives = isSwitchedOn("MTPLAN_JOINT_COLLECTIVES");
  /// Limits the bytes of transposed data in one launch of grouped collectives.
  /// Larger groups are split into several launches.
  std::size_t roomToJoin = std::size_t{64} << 20;
  MatrixProducts products;
  /// Holds the cuDNN graphs; null until a kernel needs one.
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

/// Copies values to the device, and waits for the copy. The function may be
/// called only while kernels are prepared.
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
