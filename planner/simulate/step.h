//===- step.h - One training step of all pipeline stages --------*- C++ -*-===//
//
// Simulates a training step. All ranks of a stage run the same tasks at the
// same time, so a stage is one set of streams: compute, sends to the next and
// to the previous virtual stage, data-parallel collectives, and three for the
// host (gradients down, update, parameters up). The first stage also has the
// streams of the tied embedding's all-reduce and of the gradient norm. Work
// that does not overlap runs on the compute stream instead. A send occupies a
// stream of the sender; the receiver only waits.
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

/// Holds the times of one of `count` equal consecutive segments. The times of
/// work that recurs in every micro-batch are for one micro-batch. A collective
/// that overlaps compute handles one segment at a time; other collectives
/// handle one chunk at a time.
struct SliceTimes {
  int count = 1;
  Seconds forward;
  Seconds backward;       ///< including recomputation and weightGradient
  Seconds weightGradient; ///< the part of `backward` that zero-bubble postpones
  Seconds gather;         ///< parameters' all-gather over replicas; 0: none
  Seconds reduce;         ///< gradients' reduction over replicas; 0: none
};

struct ChunkTimes {
  std::vector<SliceTimes> slices; ///< in the model's order
  /// Holds the part of the forward and backward of all slices in which the
  /// device waits for the host's launches.
  Seconds launch;
  Seconds sendForward;  ///< of the output, to the next virtual stage
  Seconds sendBackward; ///< of the input's gradient, to the previous one
  /// These are the times of offload, once a step: the copy of gradients to the
  /// host, the optimizer's update on the host, and the copy of parameters back.
  Seconds down, hostUpdate, up;
};

struct StageTimes {
  std::vector<ChunkTimes> chunks;
  Seconds update; ///< the optimizer's update on the device
};

enum class GatherRule : std::uint8_t {
  beforeStep, ///< once, before each segment's first forward (ZeRO-1, 2)
  eachUse,    ///< before each forward and each backward (ZeRO-3)
};

enum class ReduceRule : std::uint8_t {
  onceAStep,      ///< after the last micro-batch's backward
  eachMicroBatch, ///< ZeRO-2, 3: full gradients are never stored
};

/// Says which kinds of work overlap compute, on separate streams.
struct Overlaps {
  bool pointToPoint = true;
  bool gather = true; ///< all-gathers, under either GatherRule
  /// If false, reductions that run once a step follow all forwards and
  /// backwards.
  bool reduce = true;
  bool down = true, hostUpdate = true, up = true;
};

struct StepProblem {
  ScheduleShape shape;
  std::vector<StageTimes> stages;
  GatherRule gather = GatherRule::beforeStep;
  ReduceRule reduce = ReduceRule::onceAStep;
  Overlaps overlap;
  /// Limits the segments that GatherRule::eachUse all-gathers ahead of compute.
  int prefetch = 1;
  /// Holds the time of the all-reduce of a tied embedding's gradient between
  /// the first and the last stage; unused with one stage.
  Seconds tied;
  /// Says whether every update waits for all gradients and their norm.
  bool clipsGradients = false;
  Seconds gradientNorm;
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

struct StepTask {
  StepRole role = StepRole::forward;
  bool onCompute = false; ///< runs on the stage's compute stream
  int stage = 0;          ///< 0 for tied and norm, which use several stages
  int chunk = -1;         ///< index in the stage; -1: all chunks
  int microBatch = -1;    ///< index in the step; -1: the task runs once a step
  int segment = -1;       ///< index in the chunk; -1: all segments
};

struct StepGraph {
  TaskGraph graph;
  std::vector<StepTask> tasks; ///< empty unless stepGraphOf() describes them
  std::int64_t messages = 0;   ///< sends from stage to stage
};

/// Returns the tasks of a problem that passes check(). Every task comes after
/// its dependencies.
/// \param describe  whether to set StepGraph::tasks
/// \throws std::invalid_argument if the schedule deadlocks
StepGraph stepGraphOf(const StepProblem &problem, const Schedule &schedule,
                      bool describe);

/// Holds the times that make up a stage's step. All times add up to the step's
/// time.
struct StageUse {
  Seconds busy;   ///< forward and backward
  Seconds update; ///< the optimizer's update on the device
  /// Holds the time of waits for sends, or of sends on the compute stream.
  Seconds exposedPointToPoint;
  Seconds exposedData; ///< exposed all-gathers and gradient reductions
  Seconds exposedSync; ///< exposed tied embedding and gradient norm
  Seconds exposedHost; ///< exposed offload
  Seconds bubble;      ///< waits for other stages' work
  InFlight inFlight;   ///< activations in flight at their peak
};

struct StepResult {
  Seconds step;
  std::vector<StageUse> stages;
  std::int64_t messages = 0; ///< as in StepGraph
  TaskGraph graph;
  Timeline timeline;           ///< of `graph`
  std::vector<StepTask> tasks; ///< per task of `graph`
};

/// Returns a sentence for each error of a problem; empty if it is valid. All
/// times must be finite and >= 0.
std::vector<std::string> check(const StepProblem &problem);

/// Simulates a problem that passes check().
/// \throws std::invalid_argument if the schedule deadlocks
StepResult simulateStep(const StepProblem &problem, const Schedule &schedule);

/// Returns StepResult::step alone, in about half the time.
Seconds stepSeconds(const StepProblem &problem, const Schedule &schedule);

/// Returns a lower bound of the step's time, up to rounding: the maximum of the
/// bounds of all stages. A stage's bound adds the work that precedes its first
/// task, all its own work, its waits for the inputs of the first and of the
/// last backward, and the work that must follow. The bound counts forward,
/// backward, sends and updates, and ignores all-gathers, reductions and
/// offload. The bound is exact for equal stages under 1f1b without
/// communication. No schedule is built, so the time is O(stages * chunks *
/// slices).
Seconds stepLowerBound(const StepProblem &problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_H
