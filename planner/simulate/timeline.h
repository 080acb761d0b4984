//===- timeline.h - When tasks on streams start and finish ------*- C++ -*-===//
//
// Computes start and finish of tasks. A task runs on one stream for its
// duration, after its dependencies and after the tasks added to its stream
// before it: a stream is a queue. Concurrent tasks on the same link share it:
// each of k tasks proceeds at 1/k of its speed (processor sharing).
//
// Without sharing the result is the longest path to each task, in O(tasks +
// dependencies), and is monotonic in every duration. With sharing it takes
// O(n log n + dependencies) to compute n tasks, and a longer task can shorten
// the total: the longer task can delay a task that would otherwise slow down a
// more urgent one on their link.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_TIMELINE_H
#define MTPLAN_PLANNER_SIMULATE_TIMELINE_H

#include <initializer_list>
#include <span>
#include <vector>

#include "planner/units.h"

namespace mtplan::planner {

inline constexpr int kNoLink = -1;

/// Describes a graph of tasks. Tasks, streams and links are numbered from 0;
/// tasks are numbered in the order of add().
class TaskGraph {
public:
  /// Adds a task and returns its number. Durations are finite and >= 0. A
  /// dependency may be a task that is added later. Dependencies below 0 are
  /// ignored, so that a caller can pass -1 for none.
  int add(int stream, Seconds duration, std::span<const int> dependencies,
          int link = kNoLink) {
    int task = int(durations.size());
    durations.push_back(duration.value);
    streams.push_back(stream);
    links.push_back(link);
    for (int dependency : dependencies)
      if (dependency >= 0) {
        needs.push_back(dependency);
        inOrder &= dependency < task;
      }
    needsBegin.push_back(int(needs.size()));
    streamCount = stream < streamCount ? streamCount : stream + 1;
    linkCount = link < linkCount ? linkCount : link + 1;
    return task;
  }
  int add(int stream, Seconds duration,
          std::initializer_list<int> dependencies = {}, int link = kNoLink) {
    return add(stream, duration,
               std::span<const int>(dependencies.begin(), dependencies.size()),
               link);
  }

  int size() const { return int(durations.size()); }
  int streamOf(int task) const { return streams[task]; }
  int linkOf(int task) const { return links[task]; }
  Seconds durationOf(int task) const { return {durations[task]}; }
  std::span<const int> dependenciesOf(int task) const {
    return {needs.data() + needsBegin[task],
            needs.data() + needsBegin[task + 1]};
  }
  int streamsUsed() const { return streamCount; }
  int linksUsed() const { return linkCount; }
  /// Returns whether every dependency was added before its task.
  bool isInOrder() const { return inOrder; }
  /// Returns whether several streams use the same link.
  bool sharesLinks() const;
  void reserve(int tasks);

private:
  std::vector<double> durations;
  std::vector<int> streams, links;
  std::vector<int> needs, needsBegin = {0}; ///< dependencies, compressed rows
  int streamCount = 0, linkCount = 0;
  bool inOrder = true;
};

struct Timeline {
  std::vector<Seconds> start, finish; ///< one per task; 0 for stuck tasks
  Seconds end;                        ///< when the last task ends
  std::vector<int> stuck; ///< tasks that a deadlock keeps from starting
};

/// Returns the tasks' times. The result is deterministic: of simultaneous
/// events the lower task number comes first.
Timeline timelineOf(const TaskGraph &graph);

/// Computes the same times into `timeline`, whose memory is reused.
void timelineOf(const TaskGraph &graph, Timeline &timeline);

/// Returns a path whose durations add up to `timeline.end`, in order of time:
/// each of its tasks starts when the task before it finishes. Links must not be
/// shared, and no task may be stuck. O(tasks).
std::vector<int> criticalPath(const TaskGraph &graph, const Timeline &timeline);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_TIMELINE_H
