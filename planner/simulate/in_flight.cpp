//===- in_flight.cpp - The activations that a stage saves -----------------===//

#include "planner/simulate/in_flight.h"

#include <algorithm>

namespace mtplan::planner {
namespace {

bool splitsBackward(const std::vector<Task> &order) {
  return std::ranges::any_of(order, [](const Task &task) {
    return task.kind == TaskKind::weightGradient;
  });
}

} // namespace

InFlight inFlight(const ScheduleShape &shape, int stage) {
  int total = shape.microBatches * shape.chunks;
  InFlight most;
  // The steady state starts with a forward and holds one more than warm-up.
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

} // namespace mtplan::planner
