//===- schedule.cpp - The order of a pipeline's tasks ---------------------===//

#include "planner/simulate/schedule.h"

#include <algorithm>
#include <limits>

namespace mtplan::planner {
namespace {

/// Returns the (chunk, micro-batch) of a stage's n-th forward or backward:
/// groups of p micro-batches pass all chunks before the next group does,
/// backwards through the chunks in reverse. With one chunk it is the n-th
/// micro-batch.
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
  // The number of micro-batches by which a weight's gradient trails its
  // input's.
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

} // namespace

const char *nameOf(ScheduleKind kind) {
  switch (kind) {
  case ScheduleKind::gpipe:
    return "gpipe";
  case ScheduleKind::oneForwardOneBackward:
    return "1f1b";
  case ScheduleKind::interleaved:
    return "interleaved";
  case ScheduleKind::zeroBubble:
    return "zero-bubble";
  }
  return "";
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
  // Tasks are counted in int; a micro-batch has up to three per chunk, and a
  // send with each.
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
  std::int64_t ahead = 0;
  switch (shape.kind) {
  case ScheduleKind::gpipe:
    ahead = total;
    break;
  case ScheduleKind::oneForwardOneBackward:
  case ScheduleKind::zeroBubble:
    ahead = after;
    break;
  case ScheduleKind::interleaved:
    ahead = 2 * after + std::int64_t{shape.chunks - 1} * shape.stages;
    break;
  }
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

} // namespace mtplan::planner
