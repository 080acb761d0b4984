//===- handles.h - What a device lends, and who gives it back ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_HANDLES_H
#define MTPLAN_RUNTIME_CUDA_HANDLES_H

#include <cstddef>
#include <utility>

#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

/// Movable, not copyable. Its end waits for nothing.
class Stream {
public:
  Stream() {
    MTPLAN_CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
  }
  ~Stream() {
    if (handle)
      cudaStreamDestroy(handle);
  }
  Stream(Stream &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Stream &operator=(Stream &&) = delete;

  cudaStream_t get() const { return handle; }
  void synchronise() const { MTPLAN_CUDA(cudaStreamSynchronize(handle)); }

private:
  cudaStream_t handle = nullptr;
};

/// A mark in a stream. Movable, not copyable.
class Event {
public:
  Event() {
    MTPLAN_CUDA(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming));
  }
  ~Event() {
    if (handle)
      cudaEventDestroy(handle);
  }
  Event(Event &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Event &operator=(Event &&) = delete;

  cudaEvent_t get() const { return handle; }

private:
  cudaEvent_t handle = nullptr;
};

/// Memory of the device; grows, and is then another.
class DeviceMemory {
public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) { grow(bytes); }
  ~DeviceMemory() {
    if (data)
      cudaFree(data);
  }
  DeviceMemory(DeviceMemory &&other) noexcept
      : data(std::exchange(other.data, nullptr)),
        size(std::exchange(other.size, 0)) {}
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    std::swap(data, other.data);
    std::swap(size, other.size);
    return *this;
  }

  void grow(std::size_t bytes) {
    if (bytes <= size)
      return;
    if (data)
      MTPLAN_CUDA(cudaFree(std::exchange(data, nullptr)));
    size = 0;
    MTPLAN_CUDA(cudaMalloc(&data, bytes));
    size = bytes;
  }
  std::byte *get() const { return static_cast<std::byte *>(data); }

private:
  void *data = nullptr;
  std::size_t size = 0;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_HANDLES_H
