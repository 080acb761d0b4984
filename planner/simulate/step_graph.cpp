//===- step_graph.cpp - The tasks of one training step --------------------===//

#include "planner/simulate/step_graph.h"

#include <algorithm>
#include <stdexcept>

#include "planner/simulate/step_builder.h"

namespace mtplan::planner {
namespace {

StepRole roleOf(TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return StepRole::forward;
  case TaskKind::backward:
    return StepRole::backward;
  case TaskKind::weightGradient:
    return StepRole::weightGradient;
  }
  return StepRole::forward;
}

Seconds secondsOf(const SegmentTimes &times, TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return times.forward;
  case TaskKind::backward:
    return times.backward;
  case TaskKind::weightGradient:
    return times.weightGradient;
  }
  return {};
}

} // namespace

void StepBuilder::run() {
  for (Part &part : parts)
    part.gradientsLeft = problem.shape.microBatches;
  if (problem.gather == GatherRule::beforeStep)
    gatherBeforeStep();
  // Stages go as far as they can; a message wakes its receiver.
  std::vector<int> awake(schedule.size());
  for (std::size_t i = 0; i < awake.size(); ++i)
    awake[i] = int(awake.size() - 1 - i);
  while (!awake.empty()) {
    int stage = awake.back();
    awake.pop_back();
    const std::vector<Task> &order = schedule[stage];
    std::size_t &next = progress[stage].next;
    for (; next < order.size() && isReady(stage, order[next]); ++next) {
      const Task &task = order[next];
      addTask(stage, task);
      int receiver = numbers.receiverOf(task.kind, numbers.partOf(stage, task));
      if (receiver >= 0 && numbers.stageOf(receiver) != stage)
        awake.push_back(numbers.stageOf(receiver));
    }
  }
  for (std::size_t stage = 0; stage < schedule.size(); ++stage)
    if (progress[stage].next < schedule[stage].size())
      throw std::invalid_argument("the schedule does not finish");
  finishStep();
}

void StepBuilder::gatherBeforeStep() {
  for (int stage = 0; stage < problem.shape.stages; ++stage)
    for (int chunk = 0; chunk < problem.shape.chunks; ++chunk) {
      Seconds all = streams.chunk(stage, chunk).gather;
      if (all == Seconds{})
        continue;
      if (!problem.overlap.gather) {
        streams.add(StepRole::gather, stage, all, {}, chunk);
        continue;
      }
      for (int i = 0; i < streams.segmentCount(stage, chunk); ++i) {
        int task = streams.add(StepRole::gather, stage,
                               streams.segment(stage, chunk, i).gather, {},
                               chunk, -1, i);
        if (i == 0)
          partOf(stage, chunk).gathersBefore = task;
      }
    }
}

bool StepBuilder::isReady(int stage, const Task &task) const {
  int part = numbers.partOf(stage, task);
  int feeder = numbers.feederOf(task.kind, part);
  if (feeder >= 0 &&
      arrived[numbers.of(task.kind, feeder, task.microBatch)] == kNoTask)
    return false;
  if (task.kind == TaskKind::forward)
    return true;
  auto before = TaskKind(int(task.kind) - 1);
  return done[numbers.of(before, part, task.microBatch)];
}

void StepBuilder::addTask(int stage, const Task &task) {
  int number = numbers.partOf(stage, task);
  Part &part = parts[number];
  const SegmentTimes &whole = streams.chunk(stage, task.chunk);
  bool gathers = gathersEachUse(stage, task);
  bool ahead = gathers && problem.overlap.gather;
  if (gathers && !ahead)
    streams.add(StepRole::gather, stage, whole.gather, {}, task.chunk,
                task.microBatch);

  int feeder = numbers.feederOf(task.kind, number);
  int input = feeder < 0
                  ? kNoTask
                  : arrived[numbers.of(task.kind, feeder, task.microBatch)];
  bool first = task.kind == TaskKind::forward && !part.forwardSeen;
  int pieces = piecesOf(stage, task);
  StageProgress &mine = progress[stage];
  for (int piece = 0; piece < pieces; ++piece) {
    int segment = pieces == 1                      ? -1
                  : task.kind == TaskKind::forward ? piece
                                                   : pieces - 1 - piece;
    const SegmentTimes &times =
        segment < 0 ? whole : streams.segment(stage, task.chunk, segment);
    int gathered = kNoTask;
    if (ahead) {
      gatherAhead(stage);
      gathered = mine.gathers[mine.uses.size()];
    } else if (first && part.gathersBefore != kNoTask) {
      gathered = part.gathersBefore + std::max(0, segment);
    }
    input = streams.add(roleOf(task.kind), stage, secondsOf(times, task.kind),
                        {piece == 0 ? input : kNoTask, gathered}, task.chunk,
                        task.microBatch, segment);
    if (ahead)
      mine.uses.push_back(input);
    if (task.kind == finalKind)
      reduce(stage, task, segment, input);
  }
  part.forwardSeen = true;
  part.gradientsLeft -= task.kind == finalKind ? 1 : 0;
  done[numbers.of(stage, task)] = 1;
  send(stage, task, input);
}

bool StepBuilder::gathersEachUse(int stage, const Task &task) const {
  return problem.gather == GatherRule::eachUse &&
         task.kind != TaskKind::weightGradient &&
         streams.chunk(stage, task.chunk).gather > Seconds{};
}

/// A task is cut into its segments where something waits for one of them.
int StepBuilder::piecesOf(int stage, const Task &task) const {
  const Part &part = parts[numbers.partOf(stage, task)];
  bool cut = problem.overlap.gather && gathersEachUse(stage, task);
  cut |= task.kind == TaskKind::forward && !part.forwardSeen &&
         part.gathersBefore != kNoTask;
  cut |=
      problem.overlap.reduce && task.kind == finalKind &&
      streams.chunk(stage, task.chunk).reduce > Seconds{} &&
      (problem.reduce == ReduceRule::eachMicroBatch || part.gradientsLeft == 1);
  // The tied embedding's gradient is whole before those of other segments.
  cut |= problem.overlap.reduce && problem.tied > Seconds{} &&
         task.kind == finalKind && part.gradientsLeft == 1 &&
         numbers.partOf(stage, task) + 1 == numbers.partCount();
  return cut ? std::max(1, streams.segmentCount(stage, task.chunk)) : 1;
}

/// Gathers for the next use and for `prefetch` more. A gather waits until the
/// use before those it runs ahead of is over: its memory takes that one's
/// place.
void StepBuilder::gatherAhead(int stage) {
  const std::vector<Task> &order = schedule[stage];
  StageProgress &mine = progress[stage];
  auto prefetch = std::size_t(problem.prefetch);
  while (mine.gathers.size() <= mine.uses.size() + prefetch &&
         mine.gatherPosition < order.size()) {
    const Task &task = order[mine.gatherPosition];
    int segments = streams.segmentCount(stage, task.chunk);
    if (mine.gatherPiece == segments || !gathersEachUse(stage, task)) {
      ++mine.gatherPosition;
      mine.gatherPiece = 0;
      continue;
    }
    int piece = mine.gatherPiece++;
    int segment = task.kind == TaskKind::forward ? piece : segments - 1 - piece;
    std::size_t number = mine.gathers.size();
    int freed = number <= prefetch ? kNoTask : mine.uses[number - 1 - prefetch];
    mine.gathers.push_back(
        streams.add(StepRole::gather, stage,
                    streams.segment(stage, task.chunk, segment).gather, {freed},
                    task.chunk, task.microBatch, segment));
  }
}

/// Adds what reduces the gradients of a segment (-1: of all), which task
/// `after` made.
void StepBuilder::reduce(int stage, const Task &task, int segment, int after) {
  Part &part = partOf(stage, task.chunk);
  Seconds whole = streams.chunk(stage, task.chunk).reduce;
  bool each = problem.reduce == ReduceRule::eachMicroBatch;
  bool last = part.gradientsLeft == 1;
  bool overlaps = problem.overlap.reduce;
  if (whole > Seconds{} && (each || (last && overlaps)) &&
      (overlaps || segment <= 0)) {
    bool one = overlaps && segment >= 0;
    after = streams.add(
        StepRole::reduce, stage,
        one ? streams.segment(stage, task.chunk, segment).reduce : whole,
        {after}, task.chunk, each ? task.microBatch : -1, one ? segment : -1);
  }
  if (!last)
    return;
  if (segment <= 0)
    part.reduced = after;
  int lastOfAll = streams.segmentCount(stage, task.chunk) - 1;
  if (overlaps ? segment < 0 || segment == lastOfAll : segment <= 0)
    part.lastSegment = after;
}

void StepBuilder::send(int stage, const Task &task, int after) {
  int number = numbers.partOf(stage, task);
  int receiver = numbers.receiverOf(task.kind, number);
  if (receiver < 0)
    return;
  if (numbers.stageOf(receiver) != stage) {
    ++result.messages;
    bool forward = task.kind == TaskKind::forward;
    const ChunkTimes &chunk = problem.stages[stage].chunks[task.chunk];
    Seconds seconds = forward ? chunk.sendForward : chunk.sendBackward;
    if (seconds > Seconds{})
      after =
          streams.add(forward ? StepRole::sendForward : StepRole::sendBackward,
                      stage, seconds, {after}, task.chunk, task.microBatch);
  }
  arrived[numbers.of(stage, task)] = after;
}

StepGraph stepGraphOf(const StepProblem &problem, const Schedule &schedule,
                      bool describe) {
  StepGraph result;
  StepBuilder(problem, schedule, result, describe).run();
  return result;
}

} // namespace mtplan::planner
