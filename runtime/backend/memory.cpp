//===- memory.cpp - Memory that kernels see -------------------------------===//

#include "runtime/backend/memory.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

namespace {

class HostMemory final : public Memory {
public:
  void *allocate(std::size_t bytes) override {
    constexpr auto kUnit = static_cast<std::size_t>(kAlignment);
    // At least one unit: of nothing there need be no address.
    const std::size_t units = bytes / kUnit + 1;
    void *data = std::aligned_alloc(kUnit, units * kUnit);
    if (!data)
      throw std::runtime_error("there is no room for " + std::to_string(bytes) +
                               " bytes");
    return data;
  }
  void release(void *data) noexcept override { std::free(data); }
  void upload(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
};

} // namespace

Memory &hostMemory() {
  static HostMemory memory;
  return memory;
}

} // namespace mtplan::runtime
