//===- device_names.cpp - Which device is which, without one --------------===//

#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/emulator/streams.h"

static std::vector<std::string> given;

void mtplan::emulator::nameDevices(const std::vector<std::string> &names) {
  given = names;
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop,
                                               int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count)
    return cudaErrorInvalidDevice;
  *prop = {};
  const auto number = static_cast<std::size_t>(device);
  const std::string name = number < given.size() ? given[number] : "emulated";
  name.copy(prop->name, sizeof prop->name - 1);
  prop->uuid.bytes[15] = static_cast<char>(1 + device);
  return cudaSuccess;
}
