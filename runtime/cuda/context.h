//===- context.h - A rank's device ------------------------------*- C++ -*-===//
//
// Kernels of a rank are queued on one stream and share its scratch memory,
// which is as large as the largest of them asked for when it was prepared.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_CONTEXT_H
#define MTPLAN_RUNTIME_CUDA_CONTEXT_H

#include <memory>
#include <vector>

#include "runtime/cuda/handles.h"

namespace mtplan::runtime::cuda {

class Context {
public:
  void reserve(std::size_t bytes) { scratch.grow(bytes); }
  template <typename T> T *shared() const {
    return reinterpret_cast<T *>(scratch.get());
  }

  const Stream stream;

private:
  DeviceMemory scratch;
};

using SharedContext = std::shared_ptr<Context>;

/// What a kernel looks up, put there when it is prepared.
template <typename T>
DeviceMemory uploaded(const Context &context, const std::vector<T> &values) {
  const std::size_t bytes = values.size() * sizeof(T);
  DeviceMemory there(bytes);
  MTPLAN_CUDA(cudaMemcpyAsync(there.get(), values.data(), bytes,
                              cudaMemcpyHostToDevice, context.stream.get()));
  context.stream.synchronise();
  return there;
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_CONTEXT_H
