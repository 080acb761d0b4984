//===- runtime.cpp - CUDA's memory and devices on the host ----------------===//
//
// Implements CUDA's memory functions that runtime/cuda calls, and the
// properties of devices. Device memory is accessible only while the device
// works.
//
//===----------------------------------------------------------------------===//

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <sys/mman.h>

#include "tests/emulator/machine.h"
#include "tests/emulator/races.h"

using namespace mtplan::emulator;

namespace {

/// Returns the allocation that contains the address, or an empty region.
template <typename Pieces>
Region pieceOf(const Pieces &pieces, std::uintptr_t at) {
  for (const auto &[first, bytes] : pieces)
    if (const auto from = reinterpret_cast<std::uintptr_t>(first);
        at >= from && at < from + bytes)
      return {from, from + bytes};
  return {};
}

/// Holds the bytes of pinned allocations by address.
struct Pinned {
  std::mutex mutex;
  std::map<const std::byte *, std::size_t> pieces;

  bool has(const void *data) {
    const std::lock_guard lock(mutex);
    const Region found =
        pieceOf(pieces, reinterpret_cast<std::uintptr_t>(data));
    return found.from < found.to;
  }
};

Pinned &pinned() {
  static Pinned all;
  return all;
}

/// Holds the bytes of device allocations by address; counts WithinReach
/// objects.
struct DevicePages {
  std::mutex mutex;
  std::map<void *, std::size_t> pieces;
  int within = 0;

  void protect(int rights) {
    for (const auto &[data, bytes] : pieces)
      mprotect(data, bytes, rights);
  }
};

DevicePages &devicePages() {
  static DevicePages all;
  return all;
}

std::vector<std::string> deviceNames; ///< set by nameDevices()

cudaError_t whyNoMemory(const char *call) {
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  if (const cudaError_t why = whyNoMemoryNow(call); why != cudaSuccess)
    return why;
  return isForbidden() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

// This byte fills new memory, whose contents CUDA leaves undefined.
constexpr int kUnknown = 0xA5;

cudaError_t allocate(void **data, std::size_t size) {
  if (const cudaError_t why = whyNoMemory("cudaMallocHost"); why != cudaSuccess)
    return why;
  // Pinned memory has the alignment of device memory.
  constexpr std::size_t kUnit = 256;
  const std::size_t length = (size + kUnit - 1) / kUnit * kUnit;
  *data = std::aligned_alloc(kUnit, length);
  if (!*data)
    return cudaErrorMemoryAllocation;
  std::memset(*data, kUnknown, length);
  return cudaSuccess;
}

} // namespace

namespace mtplan::emulator {

WithinReach::WithinReach() {
  DevicePages &pages = devicePages();
  const std::lock_guard lock(pages.mutex);
  if (pages.within++ == 0)
    pages.protect(PROT_READ | PROT_WRITE);
}
WithinReach::~WithinReach() {
  DevicePages &pages = devicePages();
  const std::lock_guard lock(pages.mutex);
  if (--pages.within == 0)
    pages.protect(PROT_NONE);
}

Region regionOf(std::uintptr_t address) {
  {
    DevicePages &pages = devicePages();
    const std::lock_guard lock(pages.mutex);
    if (const Region own = pieceOf(pages.pieces, address); own.from < own.to)
      return own;
  }
  const std::lock_guard lock(pinned().mutex);
  return pieceOf(pinned().pieces, address);
}

void nameDevices(const std::vector<std::string> &names) { deviceNames = names; }

std::atomic<std::size_t> &bytesTaken(int device) {
  constexpr int kMost = 64;
  static std::array<std::atomic<std::size_t>, kMost> taken{};
  return taken.at(device);
}

} // namespace mtplan::emulator

extern "C" {

// Every call returns its own error, so no error of an earlier call is stored.
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
  case cudaErrorNotPermitted:
    return "not permitted: another device of the process may be at work that "
           "waits for this one";
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

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count)
    return cudaErrorInvalidDevice;
  *prop = {};
  const auto number = static_cast<std::size_t>(device);
  const std::string name =
      number < deviceNames.size() ? deviceNames[number] : "emulated";
  name.copy(prop->name, sizeof prop->name - 1);
  prop->uuid.bytes[15] = static_cast<char>(1 + device);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size) {
  if (const cudaError_t why = whyNoMemory("cudaMalloc"); why != cudaSuccess)
    return why;
  void *const data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return cudaErrorMemoryAllocation;
  std::memset(data, kUnknown, size);
  DevicePages &pages = devicePages();
  const std::lock_guard lock(pages.mutex);
  pages.pieces[data] = size;
  if (pages.within == 0)
    mprotect(data, size, PROT_NONE);
  *devPtr = data;
  return cudaSuccess;
}

cudaError_t cudaFree(void *devPtr) {
  if (const cudaError_t why = whyNoMemoryNow("cudaFree"); why != cudaSuccess)
    return why;
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
    return status;
  DevicePages &pages = devicePages();
  const std::lock_guard lock(pages.mutex);
  if (const auto found = pages.pieces.find(devPtr);
      found != pages.pieces.end()) {
    munmap(devPtr, found->second);
    pages.pieces.erase(found);
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  int device = 0;
  cudaGetDevice(&device);
  *total = std::size_t{80} << 30;
  *free = *total - bytesTaken(device);
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
  if (const cudaError_t why = whyNoMemoryNow("cudaFreeHost");
      why != cudaSuccess)
    return why;
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
    return status;
  const std::lock_guard lock(pinned().mutex);
  pinned().pieces.erase(static_cast<const std::byte *>(ptr));
  std::free(ptr);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t why = checkDeviceChosen(); why != cudaSuccess)
    return why;
  if (kind != cudaMemcpyHostToDevice || pinned().has(src) || isForbidden())
    return enqueue(stream, [=] { std::memcpy(dst, src, count); });
  // CUDA copies from pageable memory before it returns.
  const auto *bytes = static_cast<const std::byte *>(src);
  return enqueue(stream,
                 [dst, copy = std::vector<std::byte>(bytes, bytes + count)] {
                   std::memcpy(dst, copy.data(), copy.size());
                 });
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                            cudaStream_t stream) {
  if (const cudaError_t why = checkStreamDevice(stream); why != cudaSuccess)
    return why;
  return enqueue(stream, [=] { std::memset(devPtr, value, count); });
}

} // extern "C"
