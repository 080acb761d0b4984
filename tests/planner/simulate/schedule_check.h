//===- schedule_check.h - The errors of a schedule --------------*- C++ -*-===//
//
// Decides whether a schedule is complete and free of deadlocks, without trying
// all interleavings of the stages.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_PLANNER_SIMULATE_SCHEDULE_CHECK_H
#define MTPLAN_TESTS_PLANNER_SIMULATE_SCHEDULE_CHECK_H

#include <algorithm>
#include <string>
#include <vector>

#include "planner/simulate/schedule.h"

namespace mtplan::planner {

/// Returns text such as "forward of micro-batch 3, chunk 1".
inline std::string describe(const Task &task) {
  constexpr const char *kNames[] = {"forward", "backward", "weight gradient"};
  return std::string(kNames[static_cast<std::size_t>(task.kind)]) +
         " of micro-batch " + std::to_string(task.microBatch) + ", chunk " +
         std::to_string(task.chunk);
}

inline std::string placed(int stage, const Task &task) {
  return describe(task) + ", of stage " + std::to_string(stage);
}

/// Returns errors for tasks that are missing, repeated or unknown.
inline std::vector<std::string> checkTasks(const ScheduleShape &shape,
                                           const Schedule &schedule) {
  TaskNumbers numbers(shape);
  std::vector<std::string> errors;
  std::vector<char> seen(numbers.count(), 0);
  for (int stage = 0; stage < shape.stages; ++stage)
    for (const Task &task : schedule[stage]) {
      if (int(task.kind) >= numbers.kinds() || task.chunk < 0 ||
          task.chunk >= shape.chunks || task.microBatch < 0 ||
          task.microBatch >= shape.microBatches) {
        errors.push_back("there is no " + placed(stage, task) + ", in " +
                         std::to_string(shape.chunks) + " chunks and " +
                         std::to_string(shape.microBatches) +
                         " micro-batches of schedule " + nameOf(shape.kind));
        continue;
      }
      char &mark = seen[numbers.of(stage, task)];
      if (mark == 1)
        errors.push_back("the " + placed(stage, task) + ", is there twice");
      mark = mark == 0 ? 1 : 2;
    }
  for (int stage = 0; stage < shape.stages; ++stage)
    for (int kind = 0; kind < numbers.kinds(); ++kind)
      for (int chunk = 0; chunk < shape.chunks; ++chunk)
        for (int m = 0; m < shape.microBatches; ++m) {
          Task task{TaskKind(kind), chunk, m};
          if (seen[numbers.of(stage, task)] == 0)
            errors.push_back("the " + placed(stage, task) + ", is missing");
        }
  return errors;
}

/// Returns an error for each channel whose two ends disagree on its messages. A
/// stage sends all results of a kind to one other stage, so each sender has one
/// channel per kind.
inline std::vector<std::string> checkChannels(const ScheduleShape &shape,
                                              const Schedule &schedule) {
  TaskNumbers numbers(shape);
  std::vector<std::string> errors;
  if (shape.stages == 1)
    return errors;
  for (TaskKind kind : {TaskKind::forward, TaskKind::backward})
    for (int to = 0; to < shape.stages; ++to) {
      int from = kind == TaskKind::forward ? to + shape.stages - 1 : to + 1;
      from %= shape.stages;
      const std::vector<Task> &senders = schedule[from];
      auto sent = senders.begin();
      for (const Task &task : schedule[to]) {
        int feeder = numbers.feederOf(kind, numbers.partOf(to, task));
        if (task.kind != kind || feeder < 0)
          continue;
        Task wanted{kind, numbers.chunkOf(feeder), task.microBatch};
        auto sends = [&](const Task &other) {
          return other.kind == kind &&
                 numbers.receiverOf(kind, numbers.partOf(from, other)) >= 0;
        };
        sent = std::find_if(sent, senders.end(), sends);
        if (*sent != wanted) {
          errors.push_back("stage " + std::to_string(to) +
                           " wants the result of " + describe(wanted) +
                           ", where stage " + std::to_string(from) +
                           " sends that of " + describe(*sent));
          break;
        }
        ++sent;
      }
    }
  return errors;
}

/// Executes tasks until none can run; returns an error per stage that has tasks
/// left.
inline std::vector<std::string> checkProgress(const ScheduleShape &shape,
                                              const Schedule &schedule) {
  TaskNumbers numbers(shape);
  std::vector<char> done(numbers.count(), 0);
  std::vector<std::size_t> position(shape.stages, 0);
  std::vector<int> awake(shape.stages);
  for (int stage = 0; stage < shape.stages; ++stage)
    awake[stage] = stage;
  auto missing = [&](int stage, const Task &task) {
    int part = numbers.partOf(stage, task);
    int feeder = numbers.feederOf(task.kind, part);
    if (feeder >= 0) {
      Task needed{task.kind, numbers.chunkOf(feeder), task.microBatch};
      if (!done[numbers.of(numbers.stageOf(feeder), needed)])
        return placed(numbers.stageOf(feeder), needed);
    }
    if (task.kind != TaskKind::forward) {
      Task needed = task;
      needed.kind = TaskKind(int(task.kind) - 1);
      if (!done[numbers.of(stage, needed)])
        return placed(stage, needed);
    }
    return std::string();
  };
  while (!awake.empty()) {
    int stage = awake.back();
    awake.pop_back();
    const std::vector<Task> &order = schedule[stage];
    std::size_t &next = position[stage];
    while (next < order.size() && missing(stage, order[next]).empty()) {
      const Task &task = order[next++];
      done[numbers.of(stage, task)] = 1;
      int receiver = numbers.receiverOf(task.kind, numbers.partOf(stage, task));
      if (receiver >= 0 && numbers.stageOf(receiver) != stage)
        awake.push_back(numbers.stageOf(receiver));
    }
  }
  std::vector<std::string> errors;
  for (int stage = 0; stage < shape.stages; ++stage)
    if (position[stage] < schedule[stage].size()) {
      const Task &task = schedule[stage][position[stage]];
      errors.push_back("deadlock: the " + placed(stage, task) +
                       ", waits for the " + missing(stage, task));
    }
  return errors;
}

/// Returns a sentence for each error of a schedule of `shape`: a task that is
/// missing, repeated or unknown; else a channel with two ends that disagree;
/// else a deadlock. If there is no error, every task runs, whatever the
/// durations. Every pair of stages has a channel for activations and one for
/// gradients. Sends never wait; a channel delivers its oldest message first, so
/// both ends must agree on the order. O(tasks).
inline std::vector<std::string> checkSchedule(const ScheduleShape &shape,
                                              const Schedule &schedule) {
  if (std::vector<std::string> errors = check(shape); !errors.empty())
    return errors;
  if (schedule.size() != static_cast<std::size_t>(shape.stages))
    return {"a schedule of " + std::to_string(shape.stages) +
            " stages needs as many orders, got " +
            std::to_string(schedule.size())};
  std::vector<std::string> errors = checkTasks(shape, schedule);
  if (errors.empty())
    errors = checkChannels(shape, schedule);
  if (errors.empty())
    errors = checkProgress(shape, schedule);
  return errors;
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_SIMULATE_SCHEDULE_CHECK_H
