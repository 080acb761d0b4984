//===- memory.h - The memory of a backend -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_MEMORY_H
#define MTPLAN_RUNTIME_BACKEND_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Bytes that allocations take beyond what a plan counts.
struct Rounded {
  std::int64_t asked = 0, taken = 0;
};

/// Copies are queued like kernels (queue.h), and so follow everything queued
/// before them.
class Memory {
public:
  virtual ~Memory() = default;
  /// Returns zeroed memory, aligned to kAlignment. Untouched pages of the host
  /// take no memory.
  /// \throws std::runtime_error with the bytes if there is not enough
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *data, std::size_t bytes) noexcept = 0;

  /// Copies from the host; returns when `from` may be changed.
  virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
  /// Copies to the host; returns when the copy is complete.
  virtual void download(void *to, const void *from, std::size_t bytes) = 0;
  /// Copies to the host without a queue, in the state of the last
  /// Queue::finish. Any thread may call it.
  virtual void fetch(void *to, const void *from, std::size_t bytes) = 0;

  /// Returns the best memory for the buffers of collectives: this one, unless
  /// there is a better one. Copies from and to it may be made here, too.
  virtual Memory &ofCollectives() { return *this; }
  /// Returns the rounding of what ofCollectives() has allocated.
  virtual Rounded roundedForCollectives() const { return {}; }

  /// Returns whether the host may read and write this memory.
  virtual bool isHosts() const { return false; }
  /// Returns the host memory that the next two functions take.
  virtual Memory &staging() = 0;
  /// Returns at once: `from`, of staging(), must not change until the copy is
  /// complete.
  virtual void queueUpload(void *to, const void *from, std::size_t bytes) = 0;
  virtual void queueDownload(void *to, const void *from, std::size_t bytes) = 0;
};

/// The host's own memory: copies are complete when they return.
class HostMemory : public Memory {
public:
  void *allocate(std::size_t bytes) override;
  void release(void *data, std::size_t bytes) noexcept override;

  void upload(void *to, const void *from, std::size_t bytes) final {
    std::memcpy(to, from, bytes);
  }
  void download(void *to, const void *from, std::size_t bytes) final {
    std::memcpy(to, from, bytes);
  }
  void fetch(void *to, const void *from, std::size_t bytes) final {
    std::memcpy(to, from, bytes);
  }
  bool isHosts() const final { return true; }
  Memory &staging() final { return *this; }
  void queueUpload(void *to, const void *from, std::size_t bytes) final {
    std::memcpy(to, from, bytes);
  }
  void queueDownload(void *to, const void *from, std::size_t bytes) final {
    std::memcpy(to, from, bytes);
  }
};

/// Returns the memory of kernels that run on the host.
Memory &hostMemory();

/// Memory that is freed at the end of its scope.
class Allocation {
public:
  Allocation(Memory &theMemory, std::size_t theBytes)
      : memory(&theMemory), bytes(theBytes), data(memory->allocate(bytes)) {}
  ~Allocation() {
    if (data)
      memory->release(data, bytes);
  }
  Allocation(Allocation &&other) noexcept
      : memory(other.memory), bytes(other.bytes),
        data(std::exchange(other.data, nullptr)) {}
  Allocation &operator=(Allocation &&) = delete;

  std::byte *get() const { return static_cast<std::byte *>(data); }
  template <typename T> T *as() const { return static_cast<T *>(data); }

private:
  Memory *memory;
  std::size_t bytes;
  void *data;
};

/// Fills tensors with small numbers of both signs, few of them zero; integers
/// are 0 to 511. On zeros a device draws less power and is faster than in a
/// real step. The numbers are uploaded in pieces that take long compared with
/// the latency of an upload.
class Pattern {
public:
  /// \param theMemory  receives the numbers
  /// \param bytes      of the longest tensor; a piece has this size or 8 MiB
  Pattern(Memory &theMemory, ElementType type, std::int64_t bytes);

  void fill(void *to, std::int64_t bytes);

private:
  Memory &memory;
  const std::int64_t length; ///< bytes
  const Allocation piece;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MEMORY_H
