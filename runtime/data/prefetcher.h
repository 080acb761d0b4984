//===- prefetcher.h - The next steps' samples, read ahead -------*- C++ -*-===//
//
// One thread reads; the ranks of a process take the same steps, each at its own
// pace. A step is kept until all have taken it, and at most `depth` are kept,
// so a rank that runs ahead waits for the slowest. What goes wrong in the
// thread is thrown where the step is taken.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_PREFETCHER_H
#define MTPLAN_RUNTIME_DATA_PREFETCHER_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/data/step_samples.h"

namespace mtplan::runtime {

class Prefetcher {
public:
  using Read = std::function<StepSamples(std::int64_t step)>;

  /// Reads steps `first` to `end` - 1.
  /// \param takers  ranks that each take every step, >= 1
  /// \param depth   steps kept at most, >= 1
  Prefetcher(Read read, std::int64_t first, std::int64_t end, int takers = 1,
             int depth = 2);
  ~Prefetcher();
  Prefetcher(const Prefetcher &) = delete;
  Prefetcher &operator=(const Prefetcher &) = delete;

  /// Waits for a step. Each taker asks for `first`, `first` + 1, ... once.
  /// Null after stop().
  /// \throws what reading it threw
  std::shared_ptr<const StepSamples> take(std::int64_t step);

  /// Lets everyone who waits go, and reads no more.
  void stop();

private:
  struct Kept {
    std::shared_ptr<const StepSamples> samples;
    std::exception_ptr error;
    int left = 0; ///< takers that have yet to come
  };

  void run(std::int64_t step, std::int64_t end);

  Read read;
  const int takers;
  const std::size_t depth;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Kept> kept;
  std::int64_t firstKept; ///< step of kept.front()
  bool stopped = false;
  std::thread thread; ///< last: starts when all else is there
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_PREFETCHER_H
