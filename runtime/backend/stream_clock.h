//===- stream_clock.h - When a stream has come so far -----------*- C++ -*-===//
//
// Where kernels run when they are called, a stream has done all that it was
// given, and the host's clock tells. A device keeps its own.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_STREAM_CLOCK_H
#define MTPLAN_RUNTIME_BACKEND_STREAM_CLOCK_H

#include <chrono>
#include <cstddef>
#include <vector>

namespace mtplan::runtime {

/// Of one queue; used as that is.
class StreamClock {
public:
  virtual ~StreamClock() = default;
  /// The moment at which the selected stream has done what it has been given.
  /// Marks are 0, 1, ... Not while recording.
  virtual int mark() = 0;
  /// Of marks of any streams that have happened, as after Queue::finish.
  /// \returns seconds
  virtual double between(int from, int to) const = 0;
  /// The next mark is 0.
  virtual void clear() = 0;
};

class HostClock final : public StreamClock {
public:
  int mark() override {
    marks.push_back(Clock::now());
    return static_cast<int>(marks.size()) - 1;
  }
  double between(int from, int to) const override {
    return std::chrono::duration<double>(marks[static_cast<std::size_t>(to)] -
                                         marks[static_cast<std::size_t>(from)])
        .count();
  }
  void clear() override { marks.clear(); }

private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> marks;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_STREAM_CLOCK_H
