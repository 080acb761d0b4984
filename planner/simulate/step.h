//===- step.h - One training step of all pipeline stages --------*- C++ -*-===//
//
// All ranks of a stage do the same at the same time, so a stage is one set of
// streams: compute, sends to the next part and to the one before, data-parallel
// collectives, and three of the host (gradients down, update, parameters up).
// Work that does not overlap runs on the compute stream instead. A send
// occupies its sender; its receiver only waits.
//
// The step starts with all streams idle and ends with the last task.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_H
#define MTPLAN_PLANNER_SIMULATE_STEP_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/simulate/schedule.h"
#include "planner/simulate/timeline.h"

namespace mtplan::planner {

/// `count` equal segments in sequence. Parameters are gathered and gradients
/// reduced one segment at a time, while its neighbours compute. Times are of
/// one segment, and of one micro-batch where they depend on it.
struct SliceTimes {
  int count = 1;
  Seconds forward;
  Seconds backward;       ///< all of it, recomputation included
  Seconds weightGradient; ///< the part of `backward` that zero-bubble postpones
  Seconds gather;         ///< of parameters over the replicas; 0: none
  Seconds reduce;         ///< of gradients over the replicas; 0: none
};

struct ChunkTimes {
  std::vector<SliceTimes> slices; ///< in the model's order
  Seconds sendForward;            ///< of its output, to the next part
  Seconds sendBackward; ///< of its input's gradient, to the part before
  /// Offload once a step: gradients to the host, the optimizer's update there,
  /// parameters back.
  Seconds down, hostUpdate, up;
};

/// The indices into StepProblem::links of a stage's traffic; kNoLink is a link
/// of its own.
struct StageLinks {
  int sendForward = kNoLink, sendBackward = kNoLink;
  int data = kNoLink;
  int host = kNoLink; ///< both directions
};

struct StageTimes {
  std::vector<ChunkTimes> chunks;
  Seconds update; ///< of the optimizer, on the device
  StageLinks links;
};

enum class GatherRule : std::uint8_t {
  beforeStep,  ///< once, before each segment's first forward (ZeRO-1, 2)
  afterUpdate, ///< once, after the update (the same, not overlapped)
  eachUse,     ///< before each forward and each backward (ZeRO-3)
};

enum class ReduceRule : std::uint8_t {
  onceAStep,      ///< after the last micro-batch's backward
  eachMicroBatch, ///< ZeRO-2, 3: full gradients are never stored
};

/// The work that overlaps compute, on streams of its own.
struct Overlaps {
  bool pointToPoint = true;
  bool gather = true; ///< eachUse, beforeStep
  /// Otherwise the reduction once a step follows the last backward.
  bool reduce = true;
  bool down = true, hostUpdate = true, up = true;
};

struct StepProblem {
  ScheduleShape shape;
  std::vector<StageTimes> stages;
  GatherRule gather = GatherRule::beforeStep;
  ReduceRule reduce = ReduceRule::onceAStep;
  Overlaps overlap;
  /// For eachUse: how many segments may be gathered ahead of the one computing.
  int prefetch = 1;
  /// All-reduce of a tied embedding's gradient between the first stage's first
  /// segment and the last one's last; unused with one stage.
  Seconds tied;
  int tiedLink = kNoLink;
  /// Whether every update waits for all gradients and their norm.
  bool clipsGradients = false;
  Seconds gradientNorm;
  std::vector<std::string> links; ///< names of links that traffic can share
};

enum class StepRole : std::uint8_t {
  forward,
  backward,
  weightGradient,
  sendForward,
  sendBackward,
  gather,
  reduce,
  tied,
  norm,
  update,
  down,
  hostUpdate,
  up,
};
const char *nameOf(StepRole role);

/// The meaning of a task of the timeline.
struct StepTask {
  StepRole role = StepRole::forward;
  bool onCompute = false; ///< on the stage's compute stream
  int stage = 0;          ///< tied, norm: 0, though others take part
  int chunk = -1;         ///< -1: of the whole stage
  int microBatch = -1;    ///< -1: once a step
  int segment = -1;       ///< of the chunk; -1: all
};

/// Where a stage's time goes. The members add up to the step.
struct StageUse {
  Seconds busy;   ///< forward and backward
  Seconds update; ///< on the device
  /// Waiting for sends, or sending on the compute stream.
  Seconds exposedPointToPoint;
  Seconds exposedData; ///< the same of gathers and reduces
  Seconds exposedSync; ///< tied embedding and norm of gradients
  Seconds exposedHost; ///< offload
  Seconds bubble;      ///< waits for other stages' work
  InFlight inFlight;   ///< of activations, at its peak
};

struct StepResult {
  Seconds step;
  std::vector<StageUse> stages;
  std::int64_t messages = 0; ///< sends from stage to stage
  TaskGraph graph;
  Timeline timeline;           ///< of graph's tasks
  std::vector<StepTask> tasks; ///< what they are
};

/// Returns what is wrong with a problem, a sentence each: the shape, sizes of
/// lists, links without a name, times that are not finite and >= 0, weight
/// gradients that take longer than the backward they are part of.
std::vector<std::string> check(const StepProblem &problem);

/// Simulates a problem that passes check() with a schedule that passes
/// checkSchedule().
/// \throws std::invalid_argument if the schedule does not finish.
StepResult simulateStep(const StepProblem &problem, const Schedule &schedule);

/// Returns StepResult::step alone, in about half the time.
Seconds stepSeconds(const StepProblem &problem, const Schedule &schedule);

/// Returns a time that no step is shorter than (up to rounding), whatever its
/// gathers, reductions, offload and shared links cost: for each stage the work
/// before its first task, all of its own, and the work that must follow. It
/// counts forward, backward, sends and updates, and is exact for equal stages
/// under 1f1b without communication. O(stages * chunks * slices); no schedule
/// is built.
Seconds stepLowerBound(const StepProblem &problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_H
