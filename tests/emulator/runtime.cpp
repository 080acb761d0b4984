//===- runtime.cpp - CUDA's runtime, without a device -----------*- C++ -*-===//
//
// What runtime/cuda calls, in place of the library: memory of the device is the
// host's, and what is queued has happened.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>

extern "C" {

const char *cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : "another error";
}

cudaError_t cudaMalloc(void **devPtr, size_t size) {
  // As aligned as the device's own.
  constexpr std::size_t kUnit = 256;
  *devPtr = std::aligned_alloc(kUnit, (size + kUnit - 1) / kUnit * kUnit);
  return *devPtr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *devPtr) {
  std::free(devPtr);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            cudaMemcpyKind /*kind*/, cudaStream_t /*stream*/) {
  std::memcpy(dst, src, count);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                            cudaStream_t /*stream*/) {
  std::memset(devPtr, value, count);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                      unsigned /*flags*/) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t /*stream*/) {
  return cudaSuccess;
}

} // extern "C"
