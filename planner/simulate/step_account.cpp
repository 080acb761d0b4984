//===- step_account.cpp - Where a stage's time goes -----------------------===//

#include "planner/simulate/step_account.h"

#include <algorithm>

namespace mtplan::planner {
namespace {

Seconds &shareOf(StageUse &use, StepRole role) {
  switch (role) {
  case StepRole::forward:
  case StepRole::backward:
  case StepRole::weightGradient:
    return use.busy;
  case StepRole::sendForward:
  case StepRole::sendBackward:
    return use.exposedPointToPoint;
  case StepRole::gather:
  case StepRole::reduce:
    return use.exposedData;
  case StepRole::tied:
  case StepRole::norm:
    return use.exposedSync;
  case StepRole::update:
    return use.update;
  case StepRole::down:
  case StepRole::hostUpdate:
  case StepRole::up:
    return use.exposedHost;
  }
  return use.bubble;
}

class Account {
public:
  Account(const TaskGraph &theGraph, const std::vector<StepTask> &theTasks,
          const Timeline &theTimeline, int stages)
      : graph(theGraph), tasks(theTasks), timeline(theTimeline), uses(stages),
        free(stages), trailing(stages) {}

  std::vector<StageUse> run() {
    std::vector<int> needs;
    for (int task = 0; task < graph.size(); ++task) {
      const StepTask &what = tasks[task];
      if (!what.onCompute) {
        trail(task);
        continue;
      }
      std::span<const int> all = graph.dependenciesOf(task);
      needs.assign(all.begin(), all.end());
      wait(what.stage, needs, timeline.start[task]);
      shareOf(uses[what.stage], what.role) +=
          timeline.finish[task] - timeline.start[task];
      free[what.stage] = timeline.finish[task];
    }
    for (std::size_t stage = 0; stage < uses.size(); ++stage)
      wait(int(stage), trailing[stage], timeline.end);
    return std::move(uses);
  }

private:
  /// A stage's own collectives and offload may end after its last compute.
  void trail(int task) {
    StepRole role = tasks[task].role;
    if (role != StepRole::sendForward && role != StepRole::sendBackward &&
        role != StepRole::tied && role != StepRole::norm)
      trailing[tasks[task].stage].push_back(task);
  }

  /// Accounts for the stage's time from when it was idle until `until`, in
  /// which it waited for `needs`.
  void wait(int stage, std::vector<int> &needs, Seconds until) {
    Seconds now = free[stage];
    if (!(now < until))
      return;
    std::erase_if(needs,
                  [&](int task) { return !(now < timeline.finish[task]); });
    std::ranges::sort(needs, [&](int a, int b) {
      return std::pair(timeline.finish[a], a) <
             std::pair(timeline.finish[b], b);
    });
    StageUse &use = uses[stage];
    for (int need : needs) {
      Seconds finish = timeline.finish[need];
      if (!(now < finish))
        continue;
      // Another stage's work counts as bubble even while it runs.
      bool elsewhere = tasks[need].role <= StepRole::weightGradient &&
                       tasks[need].stage != stage;
      Seconds ready = elsewhere ? finish : readyTime(need);
      ready = std::clamp(ready, now, finish);
      use.bubble += ready - now;
      shareOf(use, tasks[need].role) += finish - ready;
      now = finish;
    }
    use.bubble += until - now;
  }

  Seconds readyTime(int task) const {
    Seconds ready;
    for (int need : graph.dependenciesOf(task))
      ready = std::max(ready, timeline.finish[need]);
    return ready;
  }

  const TaskGraph &graph;
  const std::vector<StepTask> &tasks;
  const Timeline &timeline;
  std::vector<StageUse> uses;
  std::vector<Seconds> free;
  std::vector<std::vector<int>> trailing;
};

} // namespace

std::vector<StageUse> accountOf(const StepProblem &problem,
                                const TaskGraph &graph,
                                const std::vector<StepTask> &tasks,
                                const Timeline &timeline) {
  return Account(graph, tasks, timeline, problem.shape.stages).run();
}

} // namespace mtplan::planner
