//===- handles.h - Streams, events and memory of a device -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_HANDLES_H
#define MTPLAN_RUNTIME_CUDA_HANDLES_H

#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

inline int presentDevice() {
  int device = 0;
  MTPLAN_CUDA(cudaGetDevice(&device));
  return device;
}

/// Owns a stream. The destructor does not wait for queued work.
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

/// Returns the id of the capture that a stream is in, if there is one.
inline std::optional<unsigned long long> captureOf(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  MTPLAN_CUDA(cudaStreamGetCaptureInfo(stream, &status, &number));
  if (status == cudaStreamCaptureStatusNone)
    return std::nullopt;
  return number;
}

class Event {
public:
  /// \param flags  cudaEventDefault for an event with a time stamp
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    MTPLAN_CUDA(cudaEventCreateWithFlags(&handle, flags));
  }
  ~Event() {
    if (handle)
      cudaEventDestroy(handle);
  }
  Event(Event &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  Event &operator=(Event &&) = delete;

  cudaEvent_t get() const { return handle; }
  /// Returns whether the event has completed, or was never recorded.
  bool hasHappened() const {
    const cudaError_t status = cudaEventQuery(handle);
    if (status == cudaErrorNotReady)
      return false;
    MTPLAN_CUDA(status);
    return true;
  }

private:
  cudaEvent_t handle = nullptr;
};

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

  /// Grows to at least `bytes`. Growing discards the contents.
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
