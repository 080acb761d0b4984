//===- memory.h - Memory that kernels see -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_MEMORY_H
#define MTPLAN_RUNTIME_BACKEND_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace mtplan::runtime {

/// Bytes of allocations that are rounded up to more than a plan counts.
struct Rounded {
  std::int64_t asked = 0, taken = 0;
};

/// Copies are queued as kernels are (queue.h), and so come after all that was
/// queued before them.
class Memory {
public:
  virtual ~Memory() = default;
  /// Zeros, aligned to kAlignment. Pages of the host that nobody touches take
  /// no room.
  /// \throws std::runtime_error with the bytes if there is no room
  virtual void *allocate(std::size_t bytes) = 0;
  virtual void release(void *data, std::size_t bytes) noexcept = 0;

  /// From the host's memory; returns when `from` may be changed.
  virtual void upload(void *to, const void *from, std::size_t bytes) = 0;
  /// To the host's memory; returns when it has happened.
  virtual void download(void *to, const void *from, std::size_t bytes) = 0;
  /// The same, without a queue: of what had happened at the last
  /// Queue::finish. From any thread.
  virtual void fetch(void *to, const void *from, std::size_t bytes) = 0;

  /// Where what collectives read and write is best put: here, unless there is
  /// better. Copies from and to there may be made here, too.
  virtual Memory &ofCollectives() { return *this; }
  /// What ofCollectives() has allocated, where it rounds up.
  virtual Rounded roundedForCollectives() const { return {}; }

  /// Whether the host may read and write what lies here.
  virtual bool isHosts() const { return false; }
  /// The host's memory that the two below take.
  virtual Memory &staging() = 0;
  /// Returns at once: `from`, of staging(), must stay as it is until it has
  /// happened.
  virtual void queueUpload(void *to, const void *from, std::size_t bytes) = 0;
  virtual void queueDownload(void *to, const void *from, std::size_t bytes) = 0;
};

/// The host's own: copies have happened when they return.
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

/// Where kernels see the host's memory.
Memory &hostMemory();

/// Memory that is given back.
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

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MEMORY_H
