//===- runtime.cpp - CUDA's memory, without a device ----------------------===//
//
// What runtime/cuda calls, in place of the library: memory of the device is the
// host's.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tests/emulator/streams.h"

using namespace mtplan::emulator;

extern "C" bool emulatorIsCapturing();

namespace {

/// What is pinned, by address.
struct Pinned {
  std::mutex mutex;
  std::map<const std::byte *, std::size_t> pieces;

  bool has(const void *data) {
    const std::lock_guard lock(mutex);
    const auto *byte = static_cast<const std::byte *>(data);
    auto after = pieces.upper_bound(byte);
    if (after == pieces.begin())
      return false;
    --after;
    return byte < after->first + after->second;
  }
};

Pinned &pinned() {
  static Pinned all;
  return all;
}

cudaError_t allocate(void **data, std::size_t size) {
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
    return why;
  if (emulatorIsCapturing())
    return cudaErrorStreamCaptureUnsupported;
  // As aligned as the device's own.
  constexpr std::size_t kUnit = 256;
  const std::size_t length = (size + kUnit - 1) / kUnit * kUnit;
  *data = std::aligned_alloc(kUnit, length);
  if (!*data)
    return cudaErrorMemoryAllocation;
  // Of memory nothing is known.
  std::memset(*data, 0xA5, length);
  return cudaSuccess;
}

} // namespace

extern "C" {

// Errors are told by the calls themselves.
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorNoDevice:
    return "no CUDA-capable device is detected";
  case cudaErrorInvalidDevice:
    return "invalid device ordinal";
  case cudaErrorDeviceUninitialized:
    return "of several devices none is the thread's";
  case cudaErrorInvalidResourceHandle:
    return "invalid resource handle";
  case cudaErrorInvalidConfiguration:
    return "invalid configuration argument";
  case cudaErrorStreamCaptureUnsupported:
    return "operation not permitted when stream is capturing";
  case cudaErrorStreamCaptureIsolation:
    return "dependency created on uncaptured work in another stream";
  case cudaErrorStreamCaptureUnjoined:
    return "capturing stream has unjoined work";
  default:
    return "another error";
  }
}

cudaError_t cudaMalloc(void **devPtr, size_t size) {
  return allocate(devPtr, size);
}

cudaError_t cudaFree(void *devPtr) {
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
    return status;
  std::free(devPtr);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void **ptr, size_t size) {
  const cudaError_t status = allocate(ptr, size);
  if (status != cudaSuccess)
    return status;
  const std::lock_guard lock(pinned().mutex);
  pinned().pieces[static_cast<const std::byte *>(*ptr)] = size;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *ptr) {
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
    return status;
  const std::lock_guard lock(pinned().mutex);
  pinned().pieces.erase(static_cast<const std::byte *>(ptr));
  std::free(ptr);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t why = whyHomeless(); why != cudaSuccess)
    return why;
  if (kind != cudaMemcpyHostToDevice || pinned().has(src) ||
      emulatorIsCapturing())
    return enqueue(stream, [=] { std::memcpy(dst, src, count); });
  // From pages that may be moved CUDA takes a copy first.
  const auto *bytes = static_cast<const std::byte *>(src);
  return enqueue(stream,
                 [dst, copy = std::vector<std::byte>(bytes, bytes + count)] {
                   std::memcpy(dst, copy.data(), copy.size());
                 });
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                            cudaStream_t stream) {
  if (const cudaError_t why = whyElsewhere(stream); why != cudaSuccess)
    return why;
  return enqueue(stream, [=] { std::memset(devPtr, value, count); });
}

} // extern "C"
