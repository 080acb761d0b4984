//===- counting_memory.h - Memory that counts uploads -----------*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_COUNTING_MEMORY_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_COUNTING_MEMORY_H

#include <algorithm>
#include <cstring>

#include "runtime/backend/memory.h"

namespace mtplan::runtime {

/// Counts uploads to host memory. Because this memory is not hostMemory(), its
/// users upload to it as to the memory of a device.
class CountingMemory final : public Memory {
public:
  void *allocate(std::size_t bytes) override {
    return hostMemory().allocate(bytes);
  }
  void release(void *data, std::size_t bytes) noexcept override {
    hostMemory().release(data, bytes);
  }
  void upload(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++uploads;
    longest = std::max(longest, bytes);
  }
  void download(void *, const void *, std::size_t) override {}
  void fetch(void *, const void *, std::size_t) override {}
  Memory &staging() override { return hostMemory(); }
  void queueUpload(void *, const void *, std::size_t) override {}
  void queueDownload(void *, const void *, std::size_t) override {}

  int uploads = 0;
  std::size_t longest = 0; ///< bytes of the longest upload
};

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_BACKEND_COUNTING_MEMORY_H
