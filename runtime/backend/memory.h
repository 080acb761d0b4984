//===- memory.h - The memory of a backend -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_MEMORY_H
#define MTPLAN_RUNTIME_BACKEND_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Counts the bytes that a plan requests and that allocations take.
struct Rounded {
  std::int64_t asked = 0, taken = 0;
};

/// Manages the memory of one backend. Copies other than fetch() are queued like
/// kernels (queue.h), so they run after all earlier work of the selected
/// stream.
class Memory {
public:
  virtual ~Memory() = default;
  /// Returns zeroed memory, aligned to kAlignment. Host pages that are never
  /// written use no physical memory.
  /// \throws std::runtime_error with the size if there is not enough memory
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *data, std::size_t bytes) noexcept = 0;

  /// Copies from the host. The caller may change `from` once the function has
  /// returned.
  virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
  /// Copies to the host, and blocks until the copy is complete.
  virtual void download(void *to, const void *from, std::size_t bytes) = 0;
  /// Copies to the host without the queue. The copy may miss the results of
  /// work that was queued after the last Queue::finish. Any thread may call
  /// this.
  virtual void fetch(void *to, const void *from, std::size_t bytes) = 0;

  /// Returns the memory in which buffers of collectives are allocated: this
  /// memory, unless another memory is faster for collectives. This object can
  /// also copy to and from that memory.
  virtual Memory &ofCollectives() { return *this; }
  /// Returns the requested and the rounded bytes of all allocations of
  /// ofCollectives(). Both are 0 if that memory does not round sizes.
  virtual Rounded roundedForCollectives() const { return {}; }

  /// Returns whether the host may read and write this memory.
  virtual bool isHosts() const { return false; }
  /// Returns the memory for the host's side of queued copies.
  virtual Memory &staging() = 0;
  /// Queue a copy and return at once. The host's side must be in staging().
  /// Until the copy is complete, the host must not write `from` of an upload,
  /// and must not use `to` of a download.
  virtual void queueUpload(void *to, const void *from, std::size_t bytes) = 0;
  virtual void queueDownload(void *to, const void *from, std::size_t bytes) = 0;
};

/// Manages the host's own memory. A copy is complete when its function returns.
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

Memory &hostMemory();

/// Owns memory, which the destructor frees.
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

/// Fills tensors for measurements with small numbers of both signs, which are
/// rarely zero; integers are 0 to 511. On zeros, a device draws less power and
/// runs faster than in a real step. Long tensors are uploaded in pieces that
/// are long enough to hide the latency.
class Pattern {
public:
  /// \param bytes  the size of the longest tensor; no upload exceeds this size
  /// or 8 MiB
  Pattern(Memory &theMemory, ElementType type, std::int64_t bytes);

  void fill(void *to, std::int64_t bytes);

private:
  Memory &memory;
  const std::int64_t length; ///< bytes
  const Allocation piece;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MEMORY_H
