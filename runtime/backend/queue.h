//===- queue.h - In which order a device works ------------------*- C++ -*-===//
//
// A device has streams: what is queued on one happens in order, and streams go
// side by side but for events. Where kernels run when they are called all is in
// order already, and a queue has nothing to do.
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
  /// On stream 0: after all that this has been given, and before all that it
  /// will be given.
  virtual void replay() = 0;
};

/// Of one rank; used from one thread at a time.
class Queue {
public:
  virtual ~Queue() = default;
  /// Streams 0 to streams - 1, events 0 to events - 1. At first one stream.
  virtual void open(int /*streams*/, int /*events*/) {}
  /// What is queued or prepared from now on is for this stream; at first 0.
  virtual void select(int /*stream*/) {}
  /// The event is now the end of what the selected stream has been given.
  virtual void record(int /*event*/) {}
  /// What the selected stream is given from now on follows the event.
  virtual void wait(int /*event*/) {}
  /// Returns when the event has happened. Not while recording.
  virtual void await(int /*event*/) {}
  /// Returns when all that was queued has happened.
  /// \throws what went wrong since the last time
  virtual void finish() {}
  virtual std::unique_ptr<StreamClock> clock() {
    return std::make_unique<HostClock>();
  }

  /// Whether recorded() gives anything.
  virtual bool records() const { return false; }
  /// Keeps what `work` queues instead of queueing it. All other streams must
  /// begin with an event of stream 0 in it, and have been joined by it at the
  /// end.
  virtual std::unique_ptr<Recording>
  recorded(const std::function<void()> & /*work*/) {
    return nullptr;
  }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_QUEUE_H
