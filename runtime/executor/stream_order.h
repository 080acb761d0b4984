//===- stream_order.h - Stream order of a program's run ---------*- C++ -*-===//
//
// When a run begins, the program's other streams wait for stream 0; when it
// ends, stream 0 waits for them, as plan.h requires. For streams with only
// overlapped instructions, stream 0 waits when the schedule ends. Before a host
// kernel, the host waits for the instructions that the kernel depends on.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H
#define MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H

#include <vector>

#include "runtime/backend/queue.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Queues the waits and events of one program's runs.
class StreamOrder {
public:
  StreamOrder(const Stage &stage, const Program &program);

  /// Returns the number of events that suffice for every program of the stage.
  static int eventsOf(const Stage &stage, int streams);

  /// Returns the stream of instruction i.
  int streamOf(std::size_t i) const { return places[i].stream; }
  /// Returns whether the program has kernels for the host.
  bool hasHost() const;

  /// Lets the program's other streams wait for stream 0, before a run.
  void begin(Queue &queue) const;
  /// Selects the stream of instruction i and queues its waits.
  void before(std::size_t i, Queue &queue) const;
  /// Records the event of instruction i, if another instruction waits for it.
  void after(std::size_t i, Queue &queue) const;
  /// Lets stream 0 wait for the other streams, after a run, except for those
  /// with only overlapped instructions.
  void end(Queue &queue) const;
  /// Lets stream 0 wait for overlapped collectives, after the schedule.
  void endOverlap(Queue &queue) const { join(overlapped, queue); }
  /// Returns whether some stream has only overlapped instructions.
  bool overlaps() const { return !overlapped.empty(); }

private:
  int endOf(int stream) const { return instructions + stream; }
  void join(const std::vector<int> &streams, Queue &queue) const;

  struct Place {
    int stream = 0;
    std::vector<int> awaits; ///< earlier instructions
    bool isAwaited = false;
    bool isOnHost = false;
  };
  std::vector<Place> places;
  std::vector<int> others; ///< streams other than 0
  /// Lists the streams of `others` that are joined after each run.
  std::vector<int> joined;
  /// Lists the streams of `others` that are joined after the schedule.
  std::vector<int> overlapped;
  int instructions = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H
