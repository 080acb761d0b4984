//===- schedule_check.cpp - Whether a schedule runs to its end ------------===//

#include "planner/simulate/schedule_check.h"

#include <algorithm>

#include "planner/simulate/task_numbers.h"

namespace mtplan::planner {
namespace {

const char *nameOf(TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return "forward";
  case TaskKind::backward:
    return "backward";
  case TaskKind::weightGradient:
    return "weight gradient";
  }
  return "";
}

std::string at(int stage, const Task &task) {
  return describe(task) + ", of stage " + std::to_string(stage);
}

/// Reports tasks that are missing, repeated or unknown.
std::vector<std::string> checkTasks(const ScheduleShape &shape,
                                    const Schedule &schedule) {
  TaskNumbers numbers(shape);
  std::vector<std::string> errors;
  std::vector<char> seen(numbers.count(), 0);
  for (int stage = 0; stage < shape.stages; ++stage)
    for (const Task &task : schedule[stage]) {
      if (int(task.kind) >= numbers.kinds() || task.chunk < 0 ||
          task.chunk >= shape.chunks || task.microBatch < 0 ||
          task.microBatch >= shape.microBatches) {
        errors.push_back("there is no " + at(stage, task) + ", in " +
                         std::to_string(shape.chunks) + " chunks and " +
                         std::to_string(shape.microBatches) +
                         " micro-batches of schedule " + nameOf(shape.kind));
        continue;
      }
      char &mark = seen[numbers.of(stage, task)];
      if (mark == 1)
        errors.push_back("the " + at(stage, task) + ", is there twice");
      mark = mark == 0 ? 1 : 2;
    }
  for (int stage = 0; stage < shape.stages; ++stage)
    for (int kind = 0; kind < numbers.kinds(); ++kind)
      for (int chunk = 0; chunk < shape.chunks; ++chunk)
        for (int m = 0; m < shape.microBatches; ++m) {
          Task task{TaskKind(kind), chunk, m};
          if (seen[numbers.of(stage, task)] == 0)
            errors.push_back("the " + at(stage, task) + ", is missing");
        }
  return errors;
}

/// Returns per sender the messages of a kind in the order of the channel's
/// other end. A stage sends its results to one stage and receives from one, its
/// neighbour, so one sender is one channel.
std::vector<std::string> checkChannels(const ScheduleShape &shape,
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

/// Executes the tasks until none can run.
std::vector<std::string> checkProgress(const ScheduleShape &shape,
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
        return at(numbers.stageOf(feeder), needed);
    }
    if (task.kind != TaskKind::forward) {
      Task needed = task;
      needed.kind = TaskKind(int(task.kind) - 1);
      if (!done[numbers.of(stage, needed)])
        return at(stage, needed);
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
      errors.push_back("deadlock: the " + at(stage, task) + ", waits for the " +
                       missing(stage, task));
    }
  return errors;
}

} // namespace

std::string describe(const Task &task) {
  return std::string(nameOf(task.kind)) + " of micro-batch " +
         std::to_string(task.microBatch) + ", chunk " +
         std::to_string(task.chunk);
}

std::vector<std::string> checkSchedule(const ScheduleShape &shape,
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
