//===- stream_order.h - What a program's run says to a queue ----*- C++ -*-===//
//
// Streams of a plan fork from stream 0 when a run begins and are joined by it
// when the run ends, as plan.h asks of runs; those of which all is overlapped
// when the schedule ends. Where the host computes it waits for what its
// instruction follows.
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

  /// Events that any program of the stage needs.
  static int eventsOf(const Stage &stage, int streams);

  int streamOf(std::size_t i) const { return places[i].stream; }
  /// Whether the host computes in it.
  bool hasHost() const;

  void begin(Queue &queue) const;
  /// Around instruction i.
  void before(std::size_t i, Queue &queue) const;
  void after(std::size_t i, Queue &queue) const;
  void end(Queue &queue) const;
  /// When the schedule ends.
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
  std::vector<int> joined;     ///< of those, the ones that runs to come follow
  std::vector<int> overlapped; ///< and the others
  int instructions = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STREAM_ORDER_H
