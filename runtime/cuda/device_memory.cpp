//===- device_memory.cpp - A GPU's memory ---------------------------------===//

#include "runtime/cuda/device_memory.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace mtplan::runtime::cuda {

namespace {

/// Pages of the host that stay where they are, for the device to copy.
class PinnedMemory final : public HostMemory {
public:
  void *allocate(std::size_t bytes) override {
    void *data = nullptr;
    MTPLAN_CUDA(cudaMallocHost(&data, std::max<std::size_t>(bytes, 1)));
    std::memset(data, 0, bytes);
    return data;
  }
  void release(void *data, std::size_t /*bytes*/) noexcept override {
    cudaFreeHost(data);
  }
};

class OnDevice final : public Memory {
public:
  explicit OnDevice(SharedContext theContext)
      : context(std::move(theContext)), device(presentDevice()) {}

  void *allocate(std::size_t bytes) override {
    // Of nothing there need be no address.
    const std::size_t length = std::max<std::size_t>(bytes, 1);
    void *data = nullptr;
    MTPLAN_CUDA(cudaMalloc(&data, length));
    MTPLAN_CUDA(cudaMemsetAsync(data, 0, length, context->stream().get()));
    // Whoever uses it may do so on another stream.
    context->stream().synchronise();
    return data;
  }
  void release(void *data, std::size_t /*bytes*/) noexcept override {
    cudaFree(data);
  }

  void upload(void *to, const void *from, std::size_t bytes) override {
    queueUpload(to, from, bytes);
    context->stream().synchronise();
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    queueDownload(to, from, bytes);
    context->stream().synchronise();
  }
  // Of a new thread CUDA thinks that it means the first device, and opens a
  // context there, which takes half a GiB from the rank whose device that is.
  void fetch(void *to, const void *from, std::size_t bytes) override {
    MTPLAN_CUDA(cudaSetDevice(device));
    MTPLAN_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost,
                                fetches.get()));
    fetches.synchronise();
  }

  Memory &staging() override { return pinned; }
  void queueUpload(void *to, const void *from, std::size_t bytes) override {
    MTPLAN_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                                context->stream().get()));
  }
  void queueDownload(void *to, const void *from, std::size_t bytes) override {
    MTPLAN_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost,
                                context->stream().get()));
  }

private:
  const SharedContext context;
  const int device;
  const Stream fetches;
  PinnedMemory pinned;
};

} // namespace

std::unique_ptr<Memory> makeDeviceMemory(const SharedContext &context) {
  return std::make_unique<OnDevice>(context);
}

} // namespace mtplan::runtime::cuda
