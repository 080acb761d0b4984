//===- device_names.cpp - Which device is which, without one --------------===//

#include <cstring>

#include <cuda_runtime_api.h>

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop,
                                               int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count)
    return cudaErrorInvalidDevice;
  *prop = {};
  std::strcpy(prop->name, "emulated");
  prop->uuid.bytes[15] = static_cast<char>(1 + device);
  return cudaSuccess;
}
