//===- memory.h - Memory that kernels see -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_MEMORY_H
#define MTPLAN_RUNTIME_BACKEND_MEMORY_H

#include <cstddef>
#include <utility>

namespace mtplan::runtime {

/// Copies come after all that was queued before them, and have happened when
/// they return.
class Memory {
public:
  virtual ~Memory() = default;
  /// Aligned to kAlignment; what is in it is not said.
  /// \throws std::runtime_error with the bytes if there is no room
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *data) noexcept = 0;
  /// From the host's memory.
  virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
  /// To the host's memory.
  virtual void download(void *to, const void *from, std::size_t bytes) = 0;
};

/// Where kernels see the host's memory.
Memory &hostMemory();

/// Memory that is given back.
class Allocation {
public:
  Allocation(Memory &theMemory, std::size_t bytes)
      : memory(&theMemory), data(memory->allocate(bytes)) {}
  ~Allocation() {
    if (data)
      memory->release(data);
  }
  Allocation(Allocation &&other) noexcept
      : memory(other.memory), data(std::exchange(other.data, nullptr)) {}
  Allocation &operator=(Allocation &&) = delete;

  std::byte *get() const { return static_cast<std::byte *>(data); }

private:
  Memory *memory;
  void *data;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MEMORY_H
