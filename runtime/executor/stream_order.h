//===- stream_order.h - Stream order of a program's run ---------*- C++ -*-===//
//
// When a run begins, the program's other streams wait for stream 0. When the
// run ends, stream 0 waits for the other streams, as plan.h requires. If a
// stream has only overlapped instructions, stream 0 waits for that stream when
// the schedule ends. Before a host kernel, the host waits for the instructions
// that the kernel depends on.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H
#define MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H

#include <vector>

#include "runtime/backend/queue.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

class StreamOrder {
public:
  StreamOrder(const Stage &stage, const Program &program);

  /// Returns a number of events that suffices for every program of the stage.
  static int eventsOf(const Stage &stage, int streams);

  int streamOf(std::size_t i) const { return places[i].stream; }
  bool hasHost() const;

  void begin(Queue &queue) const;
  /// Selects the stream of instruction i and queues its waits.
  void before(std::size_t i, Queue &queue) const;
  /// Records the event of instruction i, if another instruction waits for it.
  void after(std::size_t i, Queue &queue) const;
  void end(Queue &queue) const;
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
