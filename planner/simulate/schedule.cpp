//===- schedule.cpp - The order of a pipeline's tasks ---------------------===//

#include "planner/simulate/schedule.h"

#include <algorithm>
#include <limits>

namespace mtplan::planner {

namespace {

/// Returns a stage's n-th forward or backward. A group of p micro-batches
/// passes all chunks before the next group does; backward visits the chunks in
/// reverse. With one chunk, the n-th task is of the n-th micro-batch.
Task nthTask(const ScheduleShape &shape, TaskKind kind, int n) {
  if (shape.chunks == 1)
    return {kind, 0, n};
  int inGroup = n % (shape.stages * shape.chunks);
  int chunk = inGroup / shape.stages;
  int group = n / (shape.stages * shape.chunks);
  if (kind != TaskKind::forward)
    chunk = shape.chunks - 1 - chunk;
  return {kind, chunk, group * shape.stages + inGroup % shape.stages};
}

void appendGPipe(const ScheduleShape &shape, std::vector<Task> &order) {
  for (int n = 0; n < shape.microBatches; ++n)
    order.push_back({TaskKind::forward, 0, n});
  for (int n = shape.microBatches; n-- > 0;)
    order.push_back({TaskKind::backward, 0, n});
}

void appendAlternating(const ScheduleShape &shape, int stage,
                       std::vector<Task> &order) {
  int total = shape.microBatches * shape.chunks;
  int ahead = warmUp(shape, stage);
  // The number of micro-batches by which the gradients of weights are delayed
  // after the gradients of inputs.
  int behind = std::min(stage, total);
  bool split = shape.kind == ScheduleKind::zeroBubble;
  for (int n = 0; n < ahead; ++n)
    order.push_back(nthTask(shape, TaskKind::forward, n));
  for (int n = 0; n < total; ++n) {
    if (n + ahead < total)
      order.push_back(nthTask(shape, TaskKind::forward, n + ahead));
    order.push_back(nthTask(shape, TaskKind::backward, n));
    if (split && n >= behind)
      order.push_back(nthTask(shape, TaskKind::weightGradient, n - behind));
  }
  if (split)
    for (int n = total - behind; n < total; ++n)
      order.push_back(nthTask(shape, TaskKind::weightGradient, n));
}

bool splitsBackward(const std::vector<Task> &order) {
  return std::ranges::any_of(order, [](const Task &task) {
    return task.kind == TaskKind::weightGradient;
  });
}

std::string at(int stage, const Task &task) {
  return describe(task) + ", of stage " + std::to_string(stage);
}

/// Returns errors for tasks that are missing, repeated or unknown.
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

/// Returns the errors of channels with ends that disagree. A stage sends all
/// results of a kind to one other stage, so each sender has one channel per
/// kind.
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

/// Executes tasks until none can run; returns an error per stage that has tasks
/// left.
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

const char *nameOf(ScheduleKind kind) {
  constexpr const char *kNames[] = {"gpipe", "1f1b", "interleaved",
                                    "zero-bubble"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<std::string> check(const ScheduleShape &shape) {
  std::vector<std::string> errors;
  auto needsOne = [&](const char *what, int got) {
    if (got < 1)
      errors.push_back("a pipeline needs at least 1 " + std::string(what) +
                       ", got " + std::to_string(got));
  };
  needsOne("stage", shape.stages);
  needsOne("chunk per stage", shape.chunks);
  needsOne("micro-batch", shape.microBatches);
  if (!errors.empty())
    return errors;

  if (shape.chunks > 1 && shape.kind != ScheduleKind::interleaved)
    errors.push_back(std::string("schedule ") + nameOf(shape.kind) +
                     " takes 1 chunk per stage, got " +
                     std::to_string(shape.chunks) +
                     "; only interleaved takes more");
  int rest = shape.microBatches % shape.stages;
  if (shape.kind == ScheduleKind::interleaved && rest != 0) {
    std::int64_t below = shape.microBatches - rest;
    std::string nearest = std::to_string(below + shape.stages);
    if (below > 0)
      nearest = std::to_string(below) + " or " + nearest;
    errors.push_back("schedule interleaved takes micro-batches in groups of " +
                     std::to_string(shape.stages) + " (one per stage), got " +
                     std::to_string(shape.microBatches) +
                     "; nearest: " + nearest);
  }
  // Task counts must fit in int; a micro-batch has up to three tasks per chunk,
  // each with a send.
  double tasks = double(shape.stages) * shape.chunks * shape.microBatches;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 8;
  if (tasks > double(kMost))
    errors.push_back("a schedule holds at most " + std::to_string(kMost) +
                     " micro-batches times chunks, got " +
                     std::to_string(shape.stages) + " stages times " +
                     std::to_string(shape.chunks) + " chunks times " +
                     std::to_string(shape.microBatches) + " micro-batches");
  return errors;
}

int warmUp(const ScheduleShape &shape, int stage) {
  std::int64_t total = std::int64_t{shape.microBatches} * shape.chunks;
  std::int64_t after = shape.stages - 1 - stage;
  std::int64_t ahead = after;
  if (shape.kind == ScheduleKind::gpipe)
    ahead = total;
  else if (shape.kind == ScheduleKind::interleaved)
    ahead = 2 * after + std::int64_t{shape.chunks - 1} * shape.stages;
  return static_cast<int>(std::min(total, ahead));
}

Schedule scheduleOf(const ScheduleShape &shape) {
  Schedule schedule(shape.stages);
  int kinds = shape.kind == ScheduleKind::zeroBubble ? 3 : 2;
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::vector<Task> &order = schedule[stage];
    order.reserve(std::size_t{1} * kinds * shape.microBatches * shape.chunks);
    if (shape.kind == ScheduleKind::gpipe)
      appendGPipe(shape, order);
    else
      appendAlternating(shape, stage, order);
  }
  return schedule;
}

InFlight inFlight(const ScheduleShape &shape, int stage) {
  int total = shape.microBatches * shape.chunks;
  InFlight most;
  // The steady state starts with a forward, so one more activation is in flight
  // than after warm-up.
  most.full = std::min(total, warmUp(shape, stage) + 1);
  if (shape.kind == ScheduleKind::zeroBubble)
    most.weightOnly = std::min(stage, total - most.full);
  return most;
}

InFlight inFlight(const std::vector<Task> &order) {
  bool split = splitsBackward(order);
  InFlight now, most;
  for (const Task &task : order) {
    switch (task.kind) {
    case TaskKind::forward:
      ++now.full;
      break;
    case TaskKind::backward:
      --now.full;
      now.weightOnly += split ? 1 : 0;
      break;
    case TaskKind::weightGradient:
      --now.weightOnly;
      break;
    }
    most = std::max(most, now);
  }
  return most;
}

Bytes peakActivations(const std::vector<Task> &order,
                      const std::vector<Activations> &chunks) {
  bool split = splitsBackward(order);
  Bytes now, most;
  for (const Task &task : order) {
    const Activations &held = chunks[task.chunk];
    switch (task.kind) {
    case TaskKind::forward:
      now += held.full;
      break;
    case TaskKind::backward:
      now = now - held.full;
      if (split)
        now += held.weightOnly;
      break;
    case TaskKind::weightGradient:
      now = now - held.weightOnly;
      break;
    }
    most = std::max(most, now);
  }
  return most;
}

std::string describe(const Task &task) {
  constexpr const char *kNames[] = {"forward", "backward", "weight gradient"};
  return std::string(kNames[static_cast<std::size_t>(task.kind)]) +
         " of micro-batch " + std::to_string(task.microBatch) + ", chunk " +
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
