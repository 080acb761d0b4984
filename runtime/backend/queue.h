//===- queue.h - The order of a device's work -------------------*- C++ -*-===//
//
// A device has streams: work on one stream runs in order, and streams run side
// by side except for events. Where kernels run when they are called, everything
// is in order already, and a queue does nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_QUEUE_H
#define MTPLAN_RUNTIME_BACKEND_QUEUE_H

#include <functional>
#include <memory>

#include "runtime/backend/stream_clock.h"

namespace mtplan::runtime {

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
