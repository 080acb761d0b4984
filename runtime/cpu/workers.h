//===- workers.h - The threads of a rank ------------------------*- C++ -*-===//
//
// Kernels of a step follow each other within microseconds, so idle threads look
// for work for a while before they sleep. The thread that runs a kernel works
// too, and waits only for tasks that other threads have begun. If another
// program occupies their cores, it does the remaining tasks itself.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CPU_WORKERS_H
#define MTPLAN_RUNTIME_CPU_WORKERS_H

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtplan::runtime::cpu {

class Workers {
public:
  /// \param threads  >= 1, including the caller's. Throws if they cannot be
  /// created.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers &) = delete;
  Workers &operator=(const Workers &) = delete;

  /// Calls `work(task, thread)` once for every task in [0, tasks), in any
  /// order, and returns when all are done. Throws what one of them threw. One
  /// thread at a time may call this.
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
  /// Number of the job, and number of its tasks that no thread has taken. A
  /// thread that takes one may read the job, which then exists until that task
  /// is done.
  std::atomic<std::uint64_t> open{0};
  std::atomic<std::uint32_t> undone{0};
  std::atomic<std::uint32_t> jobs{0}; ///< number so far; sleepers wait on it
  std::atomic<bool> stops{false};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::vector<std::thread> others;
};

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_WORKERS_H
