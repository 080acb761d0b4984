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

class OnDevice : public Memory {
public:
  explicit OnDevice(SharedContext theContext)
      : context(std::move(theContext)), device(presentDevice()) {}

  void *allocate(std::size_t bytes) override {
    // Of nothing there need be no address.
    const std::size_t length = std::max<std::size_t>(bytes, 1);
    void *data = take(length);
    MTPLAN_CUDA(cudaMemsetAsync(data, 0, length, context->stream().get()));
    // Whoever uses it may do so on another stream.
    context->stream().synchronise();
    return data;
  }
  void release(void *data, std::size_t /*bytes*/) noexcept override {
    cudaFree(data);
  }

  Memory &ofCollectives() override;
  Rounded roundedForCollectives() const override {
    return registered ? registered->roundedForCollectives() : Rounded{};
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

protected:
  virtual void *take(std::size_t bytes) {
    void *data = nullptr;
    try {
      MTPLAN_CUDA(cudaMalloc(&data, bytes));
    } catch (const DeviceError &) {
      cudaGetLastError(); // not that of who takes less
      throw;
    }
    return data;
  }

private:
  const SharedContext context;
  const int device;
  const Stream fetches;
  PinnedMemory pinned;
  std::unique_ptr<Memory> registered; ///< null: not asked for yet
};

class Registered final : public OnDevice {
public:
  using OnDevice::OnDevice;

  void release(void *data, std::size_t /*bytes*/) noexcept override {
    releaseForNccl(data);
  }
  Memory &ofCollectives() override { return *this; }
  Rounded roundedForCollectives() const override { return rounded; }

private:
  void *take(std::size_t bytes) override {
    const std::size_t before = leftOnDevice();
    void *data = allocateForNccl(bytes);
    const std::size_t after = leftOnDevice();
    // Others may have given something back meanwhile.
    const std::size_t taken = std::max(bytes, before - std::min(before, after));
    rounded.asked += static_cast<std::int64_t>(bytes);
    rounded.taken += static_cast<std::int64_t>(taken);
    return data;
  }
  static std::size_t leftOnDevice() {
    std::size_t left = 0, all = 0;
    MTPLAN_CUDA(cudaMemGetInfo(&left, &all));
    return left;
  }

  Rounded rounded;
};

Memory &OnDevice::ofCollectives() {
  if (!context->registersMemory)
    return *this;
  if (!registered)
    registered = std::make_unique<Registered>(context);
  return *registered;
}

} // namespace

std::unique_ptr<Memory> makeDeviceMemory(const SharedContext &context) {
  return std::make_unique<OnDevice>(context);
}

} // namespace mtplan::runtime::cuda
