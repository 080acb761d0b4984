//===- context.h - Threads and scratch memory of a rank ---------*- C++ -*-===//
//
// A rank runs one kernel at a time, so all kernels share its threads and
// scratch memory. Shapes alone decide how work is cut into tasks, and one
// thread runs a task from start to end. No result depends on the number of
// threads.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_CONTEXT_H
#define MTPLAN_RUNTIME_CPU_CONTEXT_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include <omp.h>

#include "runtime/cpu/workers.h"

namespace mtplan::runtime::cpu {

/// Bytes aligned to a cache line.
class Scratch {
public:
  void grow(std::size_t bytes) {
    if (bytes <= size)
      return;
    size = bytes;
    data.reset(static_cast<std::byte *>(
        ::operator new (bytes, std::align_val_t{kLine})));
  }
  std::byte *get() const { return data.get(); }

  static constexpr std::size_t kLine = 64;

private:
  struct Free {
    void operator()(std::byte *bytes) const {
      ::operator delete (bytes, std::align_val_t{kLine});
    }
  };
  std::unique_ptr<std::byte, Free> data;
  std::size_t size = 0;
};

constexpr std::size_t roundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

class Context {
public:
  explicit Context(int threadCount)
      : threads(std::max(1, threadCount)), workers(threads) {}

  /// Reserves scratch memory when a kernel is prepared: shared by all threads,
  /// and per thread.
  void reserve(std::size_t sharedBytes, std::size_t ownBytes) {
    common.grow(sharedBytes);
    stride = std::max(stride, roundUp(ownBytes, 4096));
    own.grow(stride * static_cast<std::size_t>(threads));
  }
  template <typename T> T *shared() const {
    return reinterpret_cast<T *>(common.get());
  }
  template <typename T> T *ofThread(int thread) const {
    return reinterpret_cast<T *>(own.get() +
                                 static_cast<std::size_t>(thread) * stride);
  }

  /// Calls `work(task, thread)` for every task.
  template <typename Work> void forEach(std::int64_t tasks, Work &&work) {
    // A product within a task runs on this thread only.
    omp_set_num_threads(1);
    if (threads == 1 || tasks <= 1) {
      for (std::int64_t task = 0; task < tasks; ++task)
        work(task, 0);
      return;
    }
    workers.run(static_cast<std::uint32_t>(tasks), work);
  }

  /// Calls `work(first, count, thread)` for parts of a range.
  template <typename Work>
  void forRange(std::int64_t total, std::int64_t piece, Work &&work) {
    forEach((total + piece - 1) / piece, [&](std::int64_t task, int thread) {
      const std::int64_t first = task * piece;
      work(first, std::min(piece, total - first), thread);
    });
  }

  const int threads;

private:
  Workers workers;
  Scratch common, own;
  std::size_t stride = 0;
};

using SharedContext = std::shared_ptr<Context>;

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_CONTEXT_H
