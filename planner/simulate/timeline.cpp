//===- timeline.cpp - When tasks on streams start and finish --------------===//
//
// With shared links a task's progress depends on the other tasks on its link,
// so events are processed in order of time. Without shared links, longest paths
// suffice.
//
//===----------------------------------------------------------------------===//

#include "planner/simulate/timeline.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace mtplan::planner {

namespace {

/// Lists the successors of each task, by dependencies and by streams' queues.
struct Successors {
  std::vector<int> begin, tasks; ///< compressed rows
  std::vector<int> waiting;      ///< per task: the predecessors left to finish

  explicit Successors(const TaskGraph &graph)
      : begin(graph.size() + 1, 0), waiting(graph.size(), 0) {
    int n = graph.size();
    std::vector<int> last(graph.streamsUsed(), -1);
    std::vector<int> ahead(n); // per task: the previous task of its stream
    for (int task = 0; task < n; ++task) {
      int &previous = last[graph.streamOf(task)];
      ahead[task] = previous;
      previous = task;
      if (ahead[task] >= 0)
        ++begin[ahead[task] + 1];
      for (int dependency : graph.dependenciesOf(task))
        ++begin[dependency + 1];
    }
    for (int task = 0; task < n; ++task)
      begin[task + 1] += begin[task];
    tasks.resize(begin[n]);
    std::vector<int> next(begin.begin(), begin.end() - 1);
    for (int task = 0; task < n; ++task) {
      if (ahead[task] >= 0) {
        tasks[next[ahead[task]]++] = task;
        ++waiting[task];
      }
      for (int dependency : graph.dependenciesOf(task)) {
        tasks[next[dependency]++] = task;
        ++waiting[task];
      }
    }
  }
};

/// Computes longest paths of tasks that are numbered after their dependencies.
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

/// Computes longest paths of tasks in any order. Returns the number of tasks
/// that are not stuck.
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
    // The task's start is final, because every predecessor has finished.
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

template <typename T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

/// Holds the predicted end of a task. The prediction is outdated if the version
/// of the task's link has changed.
struct Event {
  double time;
  int task;
  int version; ///< the link's version at the prediction
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const Event &) const = default;
};

/// Describes a shared link. All its tasks progress at the same speed, so a task
/// ends when `service` reaches a target that is known at the task's start.
struct Link {
  struct User {
    double target; ///< value of `service` at the task's end
    int task;
    // NOLINTNEXTLINE(modernize-use-nullptr): as above.
    auto operator<=>(const User &) const = default;
  };
  LeastFirst<User> users;
  /// Holds the accumulated progress per task, in seconds of an unshared link.
  double service = 0.0;
  double time = 0.0; ///< of the last change
  int version = 0;

  void advance(double now) {
    if (!users.empty())
      service += (now - time) / double(users.size());
    time = now;
  }
};

class Events {
public:
  Events(const TaskGraph &theGraph, Successors &theSuccessors,
         Timeline &theTimeline)
      : graph(theGraph), successors(theSuccessors), timeline(theTimeline),
        links(theGraph.linksUsed()) {}

  /// Returns the number of tasks that ran.
  int run() {
    for (int task = 0; task < graph.size(); ++task)
      if (successors.waiting[task] == 0)
        start(task, 0.0);
    int ran = 0;
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      int link = graph.linkOf(event.task);
      if (link >= 0 && event.version != links[link].version)
        continue;
      ++ran;
      finish(event);
    }
    return ran;
  }

private:
  void start(int task, double now) {
    timeline.start[task] = {now};
    double duration = graph.durationOf(task).value;
    int number = graph.linkOf(task);
    if (number < 0) {
      events.push({now + duration, task, 0});
      return;
    }
    Link &link = links[number];
    link.advance(now);
    link.users.push({link.service + duration, task});
    predictNextEnd(link);
  }

  void predictNextEnd(Link &link) {
    ++link.version;
    if (link.users.empty()) {
      link.service = 0.0; // avoids rounding errors for a link's only task
      return;
    }
    const Link::User &next = link.users.top();
    double left = std::max(0.0, next.target - link.service);
    events.push({link.time + left * double(link.users.size()), next.task,
                 link.version});
  }

  void finish(const Event &event) {
    timeline.finish[event.task] = {event.time};
    timeline.end = std::max(timeline.end, Seconds{event.time});
    int number = graph.linkOf(event.task);
    if (number >= 0) {
      Link &link = links[number];
      link.advance(event.time);
      link.service = link.users.top().target; // prevents drift from rounding
      link.users.pop();
      predictNextEnd(link);
    }
    for (int i = successors.begin[event.task];
         i < successors.begin[event.task + 1]; ++i)
      if (--successors.waiting[successors.tasks[i]] == 0)
        start(successors.tasks[i], event.time);
  }

  const TaskGraph &graph;
  Successors &successors;
  Timeline &timeline;
  std::vector<Link> links;
  LeastFirst<Event> events;
};

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
  int ran = shared ? Events(graph, successors, timeline).run()
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

std::vector<int> criticalPath(const TaskGraph &graph,
                              const Timeline &timeline) {
  std::vector<int> ahead(graph.size()); // the previous task of its stream
  std::vector<int> last(graph.streamsUsed(), -1);
  int task = -1;
  for (int i = 0; i < graph.size(); ++i) {
    ahead[i] = std::exchange(last[graph.streamOf(i)], i);
    if (task < 0 && timeline.finish[i] == timeline.end)
      task = i;
  }
  std::vector<int> path;
  while (task >= 0) {
    path.push_back(task);
    const Seconds start = timeline.start[task];
    int before = ahead[task];
    for (int need : graph.dependenciesOf(task))
      if (before < 0 || timeline.finish[need] > timeline.finish[before])
        before = need;
    // Tasks that take no time may precede the first task of the path.
    task = before >= 0 && start > Seconds{} ? before : -1;
  }
  std::ranges::reverse(path);
  return path;
}

} // namespace mtplan::planner
