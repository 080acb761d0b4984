//===- schedule.cpp - The order of a pipeline's tasks ---------------------===//

#include "planner/simulate/schedule.h"

#include <algorithm>
#include <limits>

namespace mtplan::planner {

namespace {

/// Returns a stage's n-th task of `kind`. Micro-batches form groups of one
/// micro-batch per stage, and a group passes all chunks before the next group
/// does. Backward visits the chunks in reverse.
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
  // The gradients of weights follow the gradients of inputs with this delay, in
  // micro-batches.
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

} // namespace mtplan::planner
