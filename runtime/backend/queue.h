//===- queue.h - The order of a device's work -------------------*- C++ -*-===//
//
// A device has streams: work on one stream runs in order, and streams run side
// by side except for events. Where kernels run when they are called, everything
// is in order already, and a queue does nothing.
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

/// Measures when the streams of one queue have reached a point. Used from the
/// same thread as the queue.
class StreamClock {
public:
  virtual ~StreamClock() = default;
  /// Marks the moment at which the selected stream has done all its work so
  /// far. Returns the mark's number: 0, 1, ... Not allowed while recording.
  virtual int mark() = 0;
  /// Returns the seconds between two marks, of any streams, that have happened,
  /// for example after Queue::finish.
  virtual double between(int from, int to) const = 0;
  /// Forgets all marks, so that the next one is 0.
  virtual void clear() = 0;
};

/// The host's clock, for kernels that run when they are called.
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

/// Work that was queued once and may be queued again as a whole.
class Recording {
public:
  virtual ~Recording() = default;
  /// Queues the work on stream 0, after everything before and before everything
  /// after it.
  virtual void replay() = 0;
};

/// The queue of one rank, used from one thread at a time.
class Queue {
public:
  virtual ~Queue() = default;

  /// Creates streams 0 to streams - 1 and events 0 to events - 1. At first
  /// there is one stream.
  virtual void open(int /*streams*/, int /*events*/) {}
  /// Selects the stream for everything queued or prepared from now on; at first
  /// 0.
  virtual void select(int /*stream*/) {}
  /// Records the event at the current end of the selected stream.
  virtual void record(int /*event*/) {}
  /// Makes later work on the selected stream follow the event.
  virtual void wait(int /*event*/) {}
  /// Returns when the event has happened. Not allowed while recording.
  virtual void await(int /*event*/) {}
  /// Returns when all queued work is complete.
  /// \throws what went wrong since the last call
  virtual void finish() {}

  virtual std::unique_ptr<StreamClock> clock() {
    return std::make_unique<HostClock>();
  }

  /// Returns whether recorded() returns something.
  virtual bool records() const { return false; }
  /// Records what `work` queues and does not run it. All other streams must
  /// begin with an event of stream 0, and stream 0 must wait for them at the
  /// end.
  virtual std::unique_ptr<Recording>
  recorded(const std::function<void()> & /*work*/) {
    return nullptr;
  }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_QUEUE_H
