//===- queue.h - The order of a device's work -------------------*- C++ -*-===//
//
// A device has streams: work on one stream runs in order, and streams run
// concurrently unless events order them. On the host, a kernel runs when it is
// called, and the queue does nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_QUEUE_H
#define MTPLAN_RUNTIME_BACKEND_QUEUE_H

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace mtplan::runtime {

/// Measures the times at which the streams of one queue reach given points.
/// Only the thread that uses the queue may use the clock.
class StreamClock {
public:
  virtual ~StreamClock() = default;
  /// Marks the time at which the selected stream completes its work so far.
  /// Returns the mark's number, counted from 0. The queue must not be
  /// recording.
  virtual int mark() = 0;
  /// Returns the seconds between two marks of any streams. The streams must
  /// have reached both marks, for example because Queue::finish has returned.
  virtual double between(int from, int to) const = 0;
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

/// Holds recorded work, like a CUDA graph, that can be replayed.
class Recording {
public:
  virtual ~Recording() = default;
  /// Queues the work on stream 0, in order with other work of that stream.
  virtual void replay() = 0;
};

/// Orders the work of one rank. Only one thread at a time may use it.
class Queue {
public:
  virtual ~Queue() = default;

  /// Creates `streams` streams and `events` events, numbered from 0. A new
  /// queue has one stream.
  virtual void open(int /*streams*/, int /*events*/) {}
  /// Selects the stream of all work that is queued, and of all kernels that are
  /// prepared, from now on. A new queue selects stream 0.
  virtual void select(int /*stream*/) {}
  /// Records the event at the current end of the selected stream.
  virtual void record(int /*event*/) {}
  /// Makes later work on the selected stream wait for the event.
  virtual void wait(int /*event*/) {}
  /// Blocks the host until the event has happened. The queue must not be
  /// recording.
  virtual void await(int /*event*/) {}
  /// Blocks the host until all queued work is complete.
  /// \throws the first failure of the work since the last call
  virtual void finish() {}

  virtual std::unique_ptr<StreamClock> clock() {
    return std::make_unique<HostClock>();
  }

  /// Returns whether recorded() returns a recording instead of null.
  virtual bool records() const { return false; }
  /// Records what `work` queues, without running it. Every other stream must
  /// begin by waiting for an event of stream 0 and end by recording an event
  /// for which stream 0 waits.
  virtual std::unique_ptr<Recording>
  recorded(const std::function<void()> & /*work*/) {
    return nullptr;
  }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_QUEUE_H
