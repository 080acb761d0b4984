//===- memory.cpp - Memory that kernels see -------------------------------===//

#include "runtime/backend/memory.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <sys/mman.h>

namespace mtplan::runtime {

// Of nothing there need be no address, but it is asked for.
static std::size_t lengthOf(std::size_t bytes) {
  return std::max<std::size_t>(bytes, 1);
}

void *HostMemory::allocate(std::size_t bytes) {
  void *data = mmap(nullptr, lengthOf(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw std::runtime_error("there is no room for " + std::to_string(bytes) +
                             " bytes");
  return data;
}

void HostMemory::release(void *data, std::size_t bytes) noexcept {
  munmap(data, lengthOf(bytes));
}

Memory &hostMemory() {
  static HostMemory memory;
  return memory;
}

} // namespace mtplan::runtime
