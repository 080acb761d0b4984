//===- step.cpp - One training step of all pipeline stages ----------------===//

#include "planner/simulate/step.h"

#include <algorithm>
#include <cmath>

namespace mtplan::planner {

namespace {

class ProblemErrors {
public:
  explicit ProblemErrors(const StepProblem &theProblem) : problem(theProblem) {}

  void time(const std::string &place, const char *what, Seconds seconds) {
    if (!(std::isfinite(seconds.value) && seconds.value >= 0.0))
      errors.push_back(place + ": " + what + " takes " +
                       std::to_string(seconds.value) +
                       " s; it must be finite and at least 0");
  }
  void count(const std::string &place, const char *what, int needed,
             std::size_t got) {
    if (std::size_t(needed) != got)
      errors.push_back(place + ": needs " + std::to_string(needed) + " " +
                       what + ", got " + std::to_string(got));
  }
  void slice(const std::string &place, const SliceTimes &slice) {
    if (slice.count < 0)
      errors.push_back(place + ": has " + std::to_string(slice.count) +
                       " segments; the number must be at least 0");
    time(place, "forward", slice.forward);
    time(place, "backward", slice.backward);
    time(place, "the gradient of weights", slice.weightGradient);
    time(place, "gather", slice.gather);
    time(place, "reduce", slice.reduce);
    if (slice.weightGradient > slice.backward)
      errors.push_back(place + ": the gradient of weights takes " +
                       std::to_string(slice.weightGradient.value) +
                       " s of a backward of " +
                       std::to_string(slice.backward.value) + " s");
  }
  void chunk(const std::string &place, const ChunkTimes &chunk) {
    for (std::size_t i = 0; i < chunk.slices.size(); ++i)
      slice(place + ", slice " + std::to_string(i), chunk.slices[i]);
    time(place, "the send forward", chunk.sendForward);
    time(place, "the send backward", chunk.sendBackward);
    time(place, "the gradient transfer to the host", chunk.down);
    time(place, "the host's update", chunk.hostUpdate);
    time(place, "the parameter transfer from the host", chunk.up);
  }
  void stage(const std::string &place, const StageTimes &stage) {
    count(place, "chunks", problem.shape.chunks, stage.chunks.size());
    for (std::size_t i = 0; i < stage.chunks.size(); ++i)
      chunk(place + ", chunk " + std::to_string(i), stage.chunks[i]);
    time(place, "update", stage.update);
  }

  const StepProblem &problem;
  std::vector<std::string> errors;
};

/// Returns the member of `use` to which the time of a role's tasks is added.
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

/// Attributes the time of each stage's step to the roles of the tasks on its
/// compute stream. While that stream is idle, the time belongs to the role of
/// the task for which the stream waits, or to the bubble if that task has not
/// started either. The caller sets StageUse::inFlight.
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
        recordTrailing(task);
        continue;
      }
      std::span<const int> all = graph.dependenciesOf(task);
      needs.assign(all.begin(), all.end());
      attributeIdle(what.stage, needs, timeline.start[task]);
      shareOf(uses[what.stage], what.role) +=
          timeline.finish[task] - timeline.start[task];
      free[what.stage] = timeline.finish[task];
    }
    for (std::size_t stage = 0; stage < uses.size(); ++stage)
      attributeIdle(int(stage), trailing[stage], timeline.end);
    return std::move(uses);
  }

private:
  /// Records a stage's collectives and offload, which may end after the stage's
  /// last compute task.
  void recordTrailing(int task) {
    StepRole role = tasks[task].role;
    if (role != StepRole::sendForward && role != StepRole::sendBackward &&
        role != StepRole::tied && role != StepRole::norm)
      trailing[tasks[task].stage].push_back(task);
  }

  /// Attributes the time from free[stage] to `until`, in which the stage is
  /// idle and waits for the tasks `needs`.
  void attributeIdle(int stage, std::vector<int> &needs, Seconds until) {
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
      // A wait for another stage's work counts as bubble even while that work
      // runs.
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

/// Holds the times of one micro-batch in one virtual stage.
struct PartTimes {
  /// `backward` excludes `weightGradient`.
  Seconds forward, backward, weightGradient;
  Seconds sendForward, sendBackward; ///< 0 without a receiver
};

std::vector<PartTimes> partTimes(const StepProblem &problem) {
  int stages = problem.shape.stages;
  int parts = stages * problem.shape.chunks;
  bool split = problem.shape.kind == ScheduleKind::zeroBubble;
  std::vector<PartTimes> all(parts);
  for (int part = 0; part < parts; ++part) {
    const ChunkTimes &chunk =
        problem.stages[part % stages].chunks[part / stages];
    PartTimes &times = all[part];
    for (const SliceTimes &slice : chunk.slices) {
      times.forward += slice.count * slice.forward;
      times.backward += slice.count * slice.backward;
      if (split)
        times.weightGradient += slice.count * slice.weightGradient;
    }
    times.backward = times.backward - times.weightGradient;
    if (stages > 1 && part + 1 < parts)
      times.sendForward = chunk.sendForward;
    if (stages > 1 && part > 0)
      times.sendBackward = chunk.sendBackward;
  }
  return all;
}

/// Returns the time of a stage's forwards before its first backward. With
/// virtual stages, a stage runs as many micro-batches forward through one chunk
/// as there are stages, before the stage continues with the next chunk.
Seconds beforeFirstBackward(const StepProblem &problem,
                            const std::vector<PartTimes> &parts, int stage) {
  const ScheduleShape &shape = problem.shape;
  int forwards =
      std::min(warmUp(shape, stage) + 1, shape.microBatches * shape.chunks);
  int group = shape.stages * shape.chunks;
  Seconds sum;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const PartTimes &times = parts[chunk * shape.stages + stage];
    int count =
        forwards / group * shape.stages +
        std::clamp(forwards % group - chunk * shape.stages, 0, shape.stages);
    sum += count * times.forward;
    if (!problem.overlap.pointToPoint)
      sum += count * times.sendForward;
  }
  return sum;
}

} // namespace

const char *nameOf(StepRole role) {
  constexpr const char *kNames[] = {
      "forward",       "backward", "weight gradient", "send forward",
      "send backward", "gather",   "reduce",          "tied embedding",
      "gradient norm", "update",   "gradients down",  "host update",
      "parameters up"};
  return kNames[static_cast<std::size_t>(role)];
}

std::vector<std::string> check(const StepProblem &problem) {
  ProblemErrors found(problem);
  found.errors = check(problem.shape);
  found.count("step", "stages", problem.shape.stages, problem.stages.size());
  for (std::size_t i = 0; i < problem.stages.size(); ++i)
    found.stage("stage " + std::to_string(i), problem.stages[i]);
  found.time("step", "the tied embedding", problem.tied);
  found.time("step", "the norm of gradients", problem.gradientNorm);
  if (problem.prefetch < 0)
    found.errors.push_back("step: prefetches " +
                           std::to_string(problem.prefetch) +
                           " segments; the number must be at least 0");
  return found.errors;
}

StepResult simulateStep(const StepProblem &problem, const Schedule &schedule) {
  StepGraph made = stepGraphOf(problem, schedule, true);
  StepResult result;
  result.graph = std::move(made.graph);
  result.tasks = std::move(made.tasks);
  result.messages = made.messages;
  result.timeline = timelineOf(result.graph);
  result.step = result.timeline.end;
  result.stages =
      Account(result.graph, result.tasks, result.timeline, problem.shape.stages)
          .run();
  for (std::size_t stage = 0; stage < schedule.size(); ++stage)
    result.stages[stage].inFlight = inFlight(schedule[stage]);
  return result;
}

Seconds stepSeconds(const StepProblem &problem, const Schedule &schedule) {
  return timelineOf(stepGraphOf(problem, schedule, false).graph).end;
}

Seconds stepLowerBound(const StepProblem &problem) {
  const ScheduleShape &shape = problem.shape;
  std::vector<PartTimes> parts = partTimes(problem);
  int stages = shape.stages;

  // `allForward` is the time of one micro-batch's forward, and `backTo` the
  // time from the start of the micro-batch until its backward can start in each
  // virtual stage.
  Seconds allForward;
  for (const PartTimes &part : parts)
    allForward += part.forward + part.sendForward;
  std::vector<Seconds> backTo(parts.size());
  Seconds back = allForward;
  for (std::size_t part = parts.size(); part-- > 0;) {
    backTo[part] = back;
    back += parts[part].backward + parts[part].sendBackward;
  }

  std::vector<Seconds> inputAt(stages); // earliest start of the first forward
  for (int stage = 1; stage < stages; ++stage)
    inputAt[stage] = inputAt[stage - 1] + parts[stage - 1].forward +
                     parts[stage - 1].sendForward;

  // `lastBackward` is the earliest time at which a stage has the gradient from
  // the last backward of the next stage's first chunk. The loop visits the last
  // stage first, because backward passes the first chunks in that order.
  Seconds step, lastBackward;
  for (int stage = stages; stage-- > 0;) {
    Seconds work, weights;
    for (std::size_t part = stage; part < parts.size(); part += stages) {
      const PartTimes &times = parts[part];
      Seconds sends;
      if (!problem.overlap.pointToPoint)
        sends = times.sendForward + times.sendBackward;
      weights += times.weightGradient;
      work += shape.microBatches *
              (times.forward + times.backward + times.weightGradient + sends);
    }
    // The last weight gradients and the last send follow the last backward.
    int late = std::min(shape.microBatches, stage + 1);
    Seconds after = late * weights;
    if (!problem.overlap.pointToPoint)
      after += parts[stage].sendBackward;
    // All work follows the first forward's input. The work after warm-up also
    // follows the input of the first backward, which is a task of the last
    // chunk.
    Seconds start = std::max(inputAt[stage],
                             backTo[parts.size() - stages + stage] -
                                 beforeFirstBackward(problem, parts, stage));
    Seconds end =
        std::max(start + work - after, lastBackward + parts[stage].backward);
    end = std::max(end, backTo[stage] + parts[stage].backward);
    step = std::max(step, end + after + problem.stages[stage].update);
    lastBackward = end + parts[stage].sendBackward;
  }
  return step;
}

} // namespace mtplan::planner
