//===- timeline.h - When tasks on streams start and finish ------*- C++ -*-===//
//
// Computes the start and finish of tasks. A stream is a queue that runs its
// tasks one at a time, in the order in which they were added. A task starts
// once its stream is free and its dependencies are done. If k tasks use the
// same link at once, each task proceeds at 1/k of its full speed (processor
// sharing).
//
// Without sharing, a task's finish is the length of the longest path to the
// task and is monotonic in every duration; the computation takes O(tasks +
// dependencies). With sharing, the computation takes O(n log n + dependencies)
// for n tasks, and a longer task can shorten the total, because it can delay
// another task that would slow down a more urgent task on the same link.
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

/// Holds tasks, streams and links, which are numbered from 0. Tasks are
/// numbered in the order of add().
class TaskGraph {
public:
  /// Adds a task and returns its number. Durations are finite and >= 0. A
  /// dependency may be a task that is added later. Dependencies below 0 are
  /// ignored.
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

/// Returns the tasks' times. The result is deterministic: simultaneous events
/// are processed in the order of task numbers.
Timeline timelineOf(const TaskGraph &graph);

/// Computes the same times into `timeline`, whose memory is reused.
void timelineOf(const TaskGraph &graph, Timeline &timeline);

/// Returns a path whose durations add up to `timeline.end`, in order of time:
/// each of its tasks starts when the task before it finishes. Links must not be
/// shared, and no task may be stuck. The time is O(tasks).
std::vector<int> criticalPath(const TaskGraph &graph, const Timeline &timeline);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_TIMELINE_H
