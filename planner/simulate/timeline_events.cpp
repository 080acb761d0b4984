//===- timeline_events.cpp - Tasks in order of time -----------------------===//

#include "planner/simulate/timeline_events.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace mtplan::planner {
namespace {

template <typename T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

/// The end of a task, void if its link has changed since.
struct Event {
  double time;
  int task;
  int version; ///< of the task's link
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const Event &) const = default;
};

/// Tasks on a link advance together, so the order of their ends is fixed on
/// arrival: by the service that they need in total.
struct Link {
  struct User {
    double target; ///< service at which it ends
    int task;
    // NOLINTNEXTLINE(modernize-use-nullptr): as above.
    auto operator<=>(const User &) const = default;
  };
  LeastFirst<User> users;
  /// Service that each user present from the start has had.
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

  int run() {
    // Starts tasks in order of index, before anything ends.
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
    foresee(link);
  }

  void foresee(Link &link) {
    ++link.version;
    if (link.users.empty()) {
      link.service = 0.0; // a lone user of a link gets exact times
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
      foresee(link);
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

Successors::Successors(const TaskGraph &graph)
    : begin(graph.size() + 1, 0), waiting(graph.size(), 0) {
  int n = graph.size();
  std::vector<int> last(graph.streamsUsed(), -1);
  std::vector<int> ahead(n); // the task before it in its stream
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

int runEvents(const TaskGraph &graph, Successors &successors,
              Timeline &timeline) {
  return Events(graph, successors, timeline).run();
}

} // namespace mtplan::planner
