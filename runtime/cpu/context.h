//===- context.h - Threads and scratch memory of a rank ---------*- C++ -*-===//
//
// A rank runs one kernel at a time, so all kernels share its threads and
// scratch memory. Kernels divide a computation into parts that depend only on
// shapes, and one thread computes a part from start to end. Therefore no result
// depends on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_CONTEXT_H
#define MTPLAN_RUNTIME_CPU_CONTEXT_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtplan::runtime::cpu {

/// Runs tasks on the thread pool of a rank. Kernels of a step follow each other
/// within microseconds, so idle threads poll for work for a while before they
/// sleep. The thread that runs a kernel executes tasks too, and waits only for
/// tasks that other threads have begun. If another program occupies the cores
/// of the other threads, this thread executes all tasks that the other threads
/// have not begun.
class Workers {
public:
  /// \param threads  the number of threads, >= 1, including the caller's
  /// \throws std::runtime_error if the threads cannot be created
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  /// Calls `work(task, thread)` once for every task in [0, tasks), in any
  /// order, and returns when all are complete. Rethrows the exception of a
  /// task. Only one thread at a time may call this.
  template <typename Work> void run(std::uint32_t tasks, Work &&work) {
    using Plain = std::remove_reference_t<Work>;
    runAll({[](void *what, std::int64_t task, int thread) {
              (*static_cast<Plain *>(what))(task, thread);
            },
            const_cast<std::remove_const_t<Plain> *>(&work), tasks});
  }

private:
  struct Job {
    void (*call)(void *what, std::int64_t task, int thread) = nullptr;
    void *what = nullptr;
    std::uint32_t tasks = 0;
  };
  void runAll(const Job &theJob);
  void end();
  bool takeOne(int thread);
  void serve(int thread);

  Job job;
  /// The upper half identifies the job, and the lower half counts the job's
  /// tasks that no thread has taken. A thread that has taken a task may read
  /// `job`, which does not change until that task is complete.
  std::atomic<std::uint64_t> open{0};
  std::atomic<std::uint32_t> undone{0};
  std::atomic<std::uint32_t> jobs{0}; ///< number of jobs so far; idle threads
                                      ///< wait on it
  std::atomic<bool> stops{false};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::vector<std::thread> others;
};

/// Holds memory aligned to a cache line. Growing discards the contents.
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

/// Makes oneDNN run products on the calling thread alone, because tasks run in
/// parallel already.
void useOneThread();

class Context {
public:
  explicit Context(int threadCount)
      : threads(std::max(1, threadCount)), workers(threads) {}

  /// Reserves scratch memory: `sharedBytes` that all threads share, and
  /// `ownBytes` for each thread. Kernels call this when they are prepared.
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

  /// Calls `work(task, thread)` for every task in [0, tasks), in parallel.
  template <typename Work> void forEach(std::int64_t tasks, Work &&work) {
    useOneThread();
    if (threads == 1 || tasks <= 1) {
      for (std::int64_t task = 0; task < tasks; ++task)
        work(task, 0);
      return;
    }
    workers.run(static_cast<std::uint32_t>(tasks), work);
  }

  /// Divides [0, total) into ranges of at most `piece` elements, and calls
  /// `work(first, count, thread)` for every range, in parallel.
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
