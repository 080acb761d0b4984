//===- timeline.cpp - When tasks on streams start and finish --------------===//

#include "planner/simulate/timeline.h"

#include <algorithm>

#include "planner/simulate/timeline_events.h"

namespace mtplan::planner {
namespace {

/// Computes longest paths of tasks that come after all they depend on.
void runInOrder(const TaskGraph &graph, Timeline &timeline) {
  std::vector<Seconds> streamFree(graph.streamsUsed());
  for (int task = 0, n = graph.size(); task < n; ++task) {
    Seconds &free = streamFree[graph.streamOf(task)];
    Seconds start = free;
    for (int dependency : graph.dependenciesOf(task))
      start = std::max(start, timeline.finish[dependency]);
    timeline.start[task] = start;
    free = start + graph.durationOf(task);
    timeline.finish[task] = free;
    timeline.end = std::max(timeline.end, free);
  }
}

/// Computes longest paths in any order. Returns how many tasks ran.
int runLongestPaths(const TaskGraph &graph, Successors &successors,
                    Timeline &timeline) {
  std::vector<int> ready;
  for (int task = 0; task < graph.size(); ++task)
    if (successors.waiting[task] == 0)
      ready.push_back(task);
  int ran = 0;
  while (!ready.empty()) {
    int task = ready.back();
    ready.pop_back();
    ++ran;
    // Every dependency has raised the task's start by now.
    Seconds finish = timeline.start[task] + graph.durationOf(task);
    timeline.finish[task] = finish;
    timeline.end = std::max(timeline.end, finish);
    for (int i = successors.begin[task]; i < successors.begin[task + 1]; ++i) {
      int successor = successors.tasks[i];
      timeline.start[successor] = std::max(timeline.start[successor], finish);
      if (--successors.waiting[successor] == 0)
        ready.push_back(successor);
    }
  }
  return ran;
}

} // namespace

bool TaskGraph::sharesLinks() const {
  if (linkCount == 0)
    return false;
  std::vector<int> user(linkCount, -1);
  for (std::size_t task = 0; task < links.size(); ++task) {
    if (links[task] < 0)
      continue;
    int &stream = user[links[task]];
    if (stream >= 0 && stream != streams[task])
      return true;
    stream = streams[task];
  }
  return false;
}

void TaskGraph::clear() {
  durations.clear();
  streams.clear();
  links.clear();
  needs.clear();
  needsBegin.assign(1, 0);
  streamCount = linkCount = 0;
  inOrder = true;
}

void TaskGraph::reserve(int tasks) {
  durations.reserve(tasks);
  streams.reserve(tasks);
  links.reserve(tasks);
  needs.reserve(2 * std::size_t(tasks));
  needsBegin.reserve(std::size_t(tasks) + 1);
}

void timelineOf(const TaskGraph &graph, Timeline &timeline) {
  timeline.start.assign(graph.size(), Seconds{});
  timeline.finish.assign(graph.size(), Seconds{});
  timeline.end = Seconds{};
  timeline.stuck.clear();
  bool shared = graph.sharesLinks();
  if (graph.isInOrder() && !shared)
    return runInOrder(graph, timeline);
  Successors successors(graph);
  int ran = shared ? runEvents(graph, successors, timeline)
                   : runLongestPaths(graph, successors, timeline);
  if (ran == graph.size())
    return;
  for (int task = 0; task < graph.size(); ++task)
    if (successors.waiting[task] > 0) {
      timeline.stuck.push_back(task);
      timeline.start[task] = Seconds{};
    }
}

Timeline timelineOf(const TaskGraph &graph) {
  Timeline timeline;
  timelineOf(graph, timeline);
  return timeline;
}

} // namespace mtplan::planner
