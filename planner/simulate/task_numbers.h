//===- task_numbers.h - Parts of a model and what waits for what *- C++ -*-===//
//
// The model is a sequence of stages * chunks parts; part c * p + i is chunk c
// of stage i. This file alone knows which task feeds which.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_TASK_NUMBERS_H
#define MTPLAN_PLANNER_SIMULATE_TASK_NUMBERS_H

#include <cstddef>

#include "planner/simulate/schedule.h"

namespace mtplan::planner {

/// Numbers (kind, part, micro-batch) from 0 without gaps.
class TaskNumbers {
public:
  explicit TaskNumbers(const ScheduleShape &theShape)
      : shape(theShape), parts(theShape.stages * theShape.chunks) {}

  static constexpr int kNone = -1;

  int kinds() const { return shape.kind == ScheduleKind::zeroBubble ? 3 : 2; }
  std::size_t count() const {
    return std::size_t{1} * kinds() * parts * shape.microBatches;
  }
  int partOf(int stage, const Task &task) const {
    return task.chunk * shape.stages + stage;
  }
  int stageOf(int part) const { return part % shape.stages; }
  int chunkOf(int part) const { return part / shape.stages; }
  int partCount() const { return parts; }

  int of(TaskKind kind, int part, int microBatch) const {
    return (int(kind) * parts + part) * shape.microBatches + microBatch;
  }
  int of(int stage, const Task &task) const {
    return of(task.kind, partOf(stage, task), task.microBatch);
  }

  /// Returns the part whose task of the same kind and micro-batch feeds this
  /// one: the part before in forward, the part after in backward; kNone at the
  /// model's ends and for weight gradients.
  int feederOf(TaskKind kind, int part) const {
    if (kind == TaskKind::forward)
      return part - 1;
    if (kind == TaskKind::backward && part + 1 < parts)
      return part + 1;
    return kNone;
  }
  /// Returns the part that receives this one's result; kNone if there is none.
  int receiverOf(TaskKind kind, int part) const {
    if (kind == TaskKind::backward)
      return part - 1;
    if (kind == TaskKind::forward && part + 1 < parts)
      return part + 1;
    return kNone;
  }

private:
  ScheduleShape shape;
  int parts;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_TASK_NUMBERS_H
