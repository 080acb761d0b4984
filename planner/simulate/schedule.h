//===- schedule.h - The order of a pipeline's tasks -------------*- C++ -*-===//
//
// A pipeline has p stages (groups of ranks), and each holds v chunks of
// consecutive segments: chunk c of stage i is the (c * p + i)-th part of the
// model. A schedule is, per stage, the order of its tasks; the dependencies of
// a task follow from the model's order and not from the schedule.
//
//   gpipe            all forwards, then all backwards in reverse order
//                    (Huang et al. 2019)
//   1f1b             one forward, one backward after a warm-up
//                    (Narayanan et al. 2021, section 2.2.1)
//   interleaved      1f1b over chunks of p micro-batches (same, 2.2.2);
//                    m must divide by p
//   zero-bubble      ZB-H1: 1f1b with backward in two tasks; stage i puts the
//                    gradients of weights off by i micro-batches, into the
//                    bubble at the end (Qi et al. 2023, section 2.1)
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
  backward,       ///< all of it; or only the inputs' gradients in zero-bubble
  weightGradient, ///< zero-bubble only
};

struct Task {
  TaskKind kind = TaskKind::forward;
  int chunk = 0;      ///< of this stage, 0 .. chunks - 1
  int microBatch = 0; ///< 0 .. microBatches - 1
  auto operator<=>(const Task &) const = default;
};

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::oneForwardOneBackward;
  int stages = 1;       ///< p >= 1
  int chunks = 1;       ///< v >= 1; more than one only if interleaved
  int microBatches = 1; ///< m >= 1
};

/// One order of tasks per stage.
using Schedule = std::vector<std::vector<Task>>;

/// Returns why a shape has no schedule, a sentence each, with both numbers and
/// the nearest values that are possible; empty if it has one.
std::vector<std::string> check(const ScheduleShape &shape);

/// Returns the tasks of a stage before its steady state of one forward, one
/// backward: forwards alone. At most microBatches * chunks.
int warmUp(const ScheduleShape &shape, int stage);

/// Returns the schedule of a shape that passes check().
Schedule scheduleOf(const ScheduleShape &shape);

/// The saved activations of a stage, in (chunk, micro-batch) pairs. They are
/// saved from a chunk's forward until its backward is done. In a zero-bubble
/// schedule backward frees a part; the rest stays until the gradients of
/// weights are computed.
struct InFlight {
  int full = 0;       ///< forward done, backward not
  int weightOnly = 0; ///< only the gradient of weights is missing
  int total() const { return full + weightOnly; }
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const InFlight &) const = default;
};

/// Returns the most that a stage holds at once: the moment with the most `full`
/// ones and, of those, the most in total. No other moment holds more in total.
/// O(1).
InFlight inFlight(const ScheduleShape &shape, int stage);

/// Returns the same, counted from an order of tasks.
InFlight inFlight(const std::vector<Task> &order);

/// The bytes that one micro-batch leaves in memory.
struct Activations {
  Bytes full;       ///< after forward
  Bytes weightOnly; ///< after backward; zero-bubble only
};

/// Returns the most bytes that an order of tasks saves at once, by the
/// activations of each chunk. A task's own activations count while it runs.
/// O(tasks).
Bytes peakActivations(const std::vector<Task> &order,
                      const std::vector<Activations> &chunks);

/// Returns "forward of micro-batch 3, chunk 1".
std::string describe(const Task &task);

/// Returns what is wrong with a schedule of `shape`, a sentence each: a task
/// that is missing, repeated or unknown; else two ends of a channel that
/// disagree; else a deadlock. Empty: every task runs, whatever the durations.
/// Stages communicate through channels: one for activations and one for
/// gradients from each stage to each other. Sending never waits; a message is
/// received only when it is the oldest of its channel, so both ends must agree
/// on the order. O(tasks).
std::vector<std::string> checkSchedule(const ScheduleShape &shape,
                                       const Schedule &schedule);

/// Numbers (kind, part, micro-batch) from 0 without gaps, and says which task
/// feeds which.
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

#endif // MTPLAN_PLANNER_SIMULATE_SCHEDULE_H
