//===- schedule.h - The order of a pipeline's tasks -------------*- C++ -*-===//
//
// Defines pipeline schedules. A pipeline has p stages (groups of ranks), and
// each stage has v chunks (consecutive segments). Chunk c of stage i is virtual
// stage c * p + i, which the code calls a part. A schedule is the order of each
// stage's tasks.
//
//   gpipe            all forwards, then all backwards in reverse order
//                    (Huang et al. 2019)
//   1f1b             after a warm-up, one forward and one backward in turn
//                    (Narayanan et al. 2021, section 2.2.1)
//   interleaved      1f1b over v chunks, in groups of p micro-batches
//                    (Narayanan et al. 2021, section 2.2.2); p must divide the
//                    number of micro-batches
//   zero-bubble      ZB-H1: 1f1b with backward in two tasks; stage i delays the
//                    weights' gradients by i micro-batches, into the bubble
//                    at the end (Qi et al. 2023, section 2.1)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_SCHEDULE_H
#define MTPLAN_PLANNER_SIMULATE_SCHEDULE_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/units.h"

namespace mtplan::planner {

enum class ScheduleKind : std::uint8_t {
  gpipe,
  oneForwardOneBackward,
  interleaved,
  zeroBubble
};
const char *nameOf(ScheduleKind kind); ///< "gpipe", "1f1b", ...

enum class TaskKind : std::uint8_t {
  forward,
  backward,       ///< in zero-bubble, only the gradients of inputs
  weightGradient, ///< zero-bubble only
};

struct Task {
  TaskKind kind = TaskKind::forward;
  int chunk = 0;      ///< 0 .. chunks - 1
  int microBatch = 0; ///< 0 .. microBatches - 1
  auto operator<=>(const Task &) const = default;
};

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::oneForwardOneBackward;
  int stages = 1;       ///< p >= 1
  int chunks = 1;       ///< v >= 1; more than one only if interleaved
  int microBatches = 1; ///< m >= 1
};

using Schedule = std::vector<std::vector<Task>>; ///< each stage's tasks

/// Returns a sentence for each error of a shape, with the nearest valid values;
/// empty if the shape has a schedule.
std::vector<std::string> check(const ScheduleShape &shape);

/// Returns the number of forwards of a stage before its steady state, in which
/// one forward and one backward alternate. The number is at most microBatches *
/// chunks.
int warmUp(const ScheduleShape &shape, int stage);

/// Returns the schedule of a shape that passes check().
Schedule scheduleOf(const ScheduleShape &shape);

/// Counts the saved activations of a stage, in (chunk, micro-batch) pairs.
/// Activations are saved from a chunk's forward until its backward is done. In
/// a zero-bubble schedule, backward frees some activations; the rest is saved
/// until the gradients of weights are computed.
struct InFlight {
  int full = 0;       ///< pairs whose forward is done and backward is not
  int weightOnly = 0; ///< pairs of which only the weight gradient is missing
  int total() const { return full + weightOnly; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const InFlight &) const = default;
};

/// Returns, in O(1), a stage's peak: the saved activations at the moment with
/// the most `full` pairs and, among such moments, the most pairs in total. No
/// other moment has more pairs in total.
InFlight inFlight(const ScheduleShape &shape, int stage);

/// Returns the same peak by counting over the stage's tasks in order.
InFlight inFlight(const std::vector<Task> &order);

/// Numbers the tasks (kind, part, micro-batch) from 0 without gaps, and finds
/// the producers and consumers of a task.
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

  /// Returns the part whose task of the same kind and micro-batch produces the
  /// input: the previous part in forward, the next part in backward; kNone at
  /// the model's ends and for weight gradients.
  int feederOf(TaskKind kind, int part) const {
    if (kind == TaskKind::forward)
      return part - 1;
    if (kind == TaskKind::backward && part + 1 < parts)
      return part + 1;
    return kNone;
  }
  /// Returns the part that receives the result of `part`; kNone if there is
  /// none.
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

#endif // MTPLAN_PLANNER_SIMULATE_SCHEDULE_H
