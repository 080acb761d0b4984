//===- stream_order.h - Stream order of a program's run ---------*- C++ -*-===//
//
// The streams of a plan fork from stream 0 when a run begins, and stream 0
// waits for them when the run ends, as plan.h requires; for streams with
// nothing but overlapped instructions, when the schedule ends. If the host
// computes, it waits for what its instruction follows.
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

  /// Returns the number of events that any program of the stage needs.
  static int eventsOf(const Stage &stage, int streams);

  int streamOf(std::size_t i) const { return places[i].stream; }
  /// Returns whether the host computes in the program.
  bool hasHost() const;

  void begin(Queue &queue) const;
  /// Queue the waits and events around instruction i.
  void before(std::size_t i, Queue &queue) const;
  void after(std::size_t i, Queue &queue) const;
  void end(Queue &queue) const;
  /// Ends overlapped instructions at the end of the schedule.
  void endOverlap(Queue &queue) const { join(overlapped, queue); }
  bool overlaps() const { return !overlapped.empty(); }

private:
  int endOf(int stream) const { return instructions + stream; }
  void join(const std::vector<int> &streams, Queue &queue) const;

  struct Place {
    int stream = 0;
    std::vector<int> awaits; ///< instructions
    bool isAwaited = false;
    bool isOnHost = false;
  };
  std::vector<Place> places;
  std::vector<int> others;     ///< streams beside 0
  std::vector<int> joined;     ///< those that later runs follow
  std::vector<int> overlapped; ///< those that later runs do not follow
  int instructions = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H
