//===- step_graph.cpp - The tasks of one training step --------------------===//

#include <algorithm>
#include <stdexcept>

#include "planner/simulate/step.h"

namespace mtplan::planner {

namespace {

constexpr int kNoTask = -1;

/// Holds the times of one segment, or the sums over one chunk.
struct SegmentTimes {
  Seconds forward, backward, weightGradient, gather, reduce;
};

/// Maps roles to streams, and segments to times.
class StepStreams {
public:
  StepStreams(const StepProblem &theProblem, StepGraph &theResult,
              bool theDescribe);

  int add(StepRole role, int stage, Seconds duration,
          std::span<const int> dependencies, int chunk = -1,
          int microBatch = -1, int segment = -1);
  int add(StepRole role, int stage, Seconds duration,
          std::initializer_list<int> dependencies, int chunk = -1,
          int microBatch = -1, int segment = -1) {
    return add(role, stage, duration,
               std::span<const int>(dependencies.begin(), dependencies.size()),
               chunk, microBatch, segment);
  }

  int segmentCount(int stage, int chunk) const {
    std::size_t at = index(stage, chunk);
    return begin[at + 1] - begin[at];
  }
  const SegmentTimes &segment(int stage, int chunk, int number) const {
    return segments[begin[index(stage, chunk)] + number];
  }
  const SegmentTimes &chunk(int stage, int number) const {
    return chunks[index(stage, number)];
  }

private:
  /// Counts the streams per stage: one per role. Some streams stay empty,
  /// because roles that run on compute share the first stream, and overlapped
  /// all-gathers use the stream of reductions.
  static constexpr int kStreams = int(StepRole::up) + 1;

  std::size_t index(int stage, int chunk) const {
    return std::size_t(stage) * problem.shape.chunks + chunk;
  }
  bool isOnCompute(StepRole role) const;

  const StepProblem &problem;
  StepGraph &result;
  bool describe;
  bool onCompute[kStreams];
  std::vector<SegmentTimes> segments, chunks; ///< ordered by stage and chunk
  std::vector<int> begin; ///< per chunk: index of its first segment
};

StepStreams::StepStreams(const StepProblem &theProblem, StepGraph &theResult,
                         bool theDescribe)
    : problem(theProblem), result(theResult), describe(theDescribe) {
  for (int role = 0; role < kStreams; ++role)
    onCompute[role] = isOnCompute(StepRole(role));
  begin.push_back(0);
  for (const StageTimes &stage : problem.stages)
    for (const ChunkTimes &times : stage.chunks) {
      SegmentTimes sum;
      for (const SliceTimes &slice : times.slices) {
        SegmentTimes one{slice.forward, slice.backward, slice.weightGradient,
                         slice.gather, slice.reduce};
        if (problem.shape.kind == ScheduleKind::zeroBubble)
          one.backward = one.backward - one.weightGradient;
        segments.insert(segments.end(), slice.count, one);
        sum.forward += slice.count * one.forward;
        sum.backward += slice.count * one.backward;
        sum.weightGradient += slice.count * one.weightGradient;
        sum.gather += slice.count * one.gather;
        sum.reduce += slice.count * one.reduce;
      }
      chunks.push_back(sum);
      begin.push_back(int(segments.size()));
    }
}

int StepStreams::add(StepRole role, int stage, Seconds duration,
                     std::span<const int> dependencies, int chunk,
                     int microBatch, int segment) {
  bool compute = onCompute[int(role)];
  // All-gathers and reductions use one communicator, so they queue together.
  StepRole queue = role == StepRole::gather ? StepRole::reduce : role;
  int stream = stage * kStreams + (compute ? 0 : int(queue));
  if (describe)
    result.tasks.push_back({role, compute, stage, chunk, microBatch, segment});
  return result.graph.add(stream, duration, dependencies);
}

bool StepStreams::isOnCompute(StepRole role) const {
  const Overlaps &overlap = problem.overlap;
  switch (role) {
  case StepRole::forward:
  case StepRole::backward:
  case StepRole::weightGradient:
  case StepRole::update:
    return true;
  case StepRole::sendForward:
  case StepRole::sendBackward:
    return !overlap.pointToPoint;
  case StepRole::gather:
    return !overlap.gather;
  case StepRole::reduce:
    return !overlap.reduce;
  case StepRole::tied:
  case StepRole::norm:
    return false;
  case StepRole::down:
    return !overlap.down;
  case StepRole::hostUpdate:
    return !overlap.hostUpdate;
  case StepRole::up:
    return !overlap.up;
  }
  return true;
}

struct StageProgress {
  std::size_t next = 0; ///< position of the first task not added yet
  /// `uses` lists the tasks that use all-gathered segments, and `gathers` the
  /// all-gather for each use. Because of prefetch, `gathers` can be longer.
  std::vector<int> uses, gathers;
  std::size_t gatherPosition = 0; ///< position of the next task to prefetch for
  int gatherSlice = 0; ///< next segment of that task, in execution order
};

StepRole roleOf(TaskKind kind) {
  return kind == TaskKind::forward    ? StepRole::forward
         : kind == TaskKind::backward ? StepRole::backward
                                      : StepRole::weightGradient;
}

Seconds secondsOf(const SegmentTimes &times, TaskKind kind) {
  return kind == TaskKind::forward    ? times.forward
         : kind == TaskKind::backward ? times.backward
                                      : times.weightGradient;
}

/// Builds the step's graph. Each stage's tasks are added in the order of its
/// schedule. If the input of a stage's next task is missing, the stage
/// continues once another stage has sent the input.
class StepBuilder {
public:
  StepBuilder(const StepProblem &theProblem, const Schedule &theSchedule,
              StepGraph &theResult, bool describe)
      : problem(theProblem), schedule(theSchedule), result(theResult),
        streams(theProblem, theResult, describe), numbers(theProblem.shape),
        finalKind(theProblem.shape.kind == ScheduleKind::zeroBubble
                      ? TaskKind::weightGradient
                      : TaskKind::backward),
        arrived(numbers.count(), kNoTask), done(numbers.count(), 0),
        progress(theProblem.shape.stages), parts(numbers.partCount()) {}

  void run() {
    for (Part &part : parts)
      part.gradientsLeft = problem.shape.microBatches;
    if (problem.gather == GatherRule::beforeStep)
      gatherBeforeStep();
    // `awake` holds the stages that may have a task to add. A stage that
    // receives a message is added again.
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
        int receiver =
            numbers.receiverOf(task.kind, numbers.partOf(stage, task));
        if (receiver >= 0 && numbers.stageOf(receiver) != stage)
          awake.push_back(numbers.stageOf(receiver));
      }
    }
    for (std::size_t stage = 0; stage < schedule.size(); ++stage)
      if (progress[stage].next < schedule[stage].size())
        throw std::invalid_argument("the schedule deadlocks");
    finishStep();
  }

private:
  struct Part {
    /// Under GatherRule::beforeStep, this task all-gathers segment 0.
    int gathersBefore = kNoTask;
    bool forwardSeen = false;
    int gradientsLeft = 0; ///< micro-batches whose gradients are missing
    int reduced = kNoTask; ///< task after which all gradients are complete
    /// After this task, the last segment's gradients are complete. Backward
    /// computes these gradients first.
    int lastSegment = kNoTask;
  };

  void gatherBeforeStep() {
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

  bool isReady(int stage, const Task &task) const {
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

  void addTask(int stage, const Task &task) {
    int number = numbers.partOf(stage, task);
    Part &part = parts[number];
    const SegmentTimes &chunk = streams.chunk(stage, task.chunk);
    bool gathers = gathersEachUse(stage, task);
    bool ahead = gathers && problem.overlap.gather;
    if (gathers && !ahead)
      streams.add(StepRole::gather, stage, chunk.gather, {}, task.chunk,
                  task.microBatch);

    int feeder = numbers.feederOf(task.kind, number);
    int input = feeder < 0
                    ? kNoTask
                    : arrived[numbers.of(task.kind, feeder, task.microBatch)];
    bool first = task.kind == TaskKind::forward && !part.forwardSeen;
    int slices = slicesOf(stage, task);
    StageProgress &mine = progress[stage];
    for (int slice = 0; slice < slices; ++slice) {
      int segment = slices == 1                      ? -1
                    : task.kind == TaskKind::forward ? slice
                                                     : slices - 1 - slice;
      const SegmentTimes &times =
          segment < 0 ? chunk : streams.segment(stage, task.chunk, segment);
      int gathered = kNoTask;
      if (ahead) {
        gatherAhead(stage);
        gathered = mine.gathers[mine.uses.size()];
      } else if (first && part.gathersBefore != kNoTask) {
        gathered = part.gathersBefore + std::max(0, segment);
      }
      input = streams.add(roleOf(task.kind), stage, secondsOf(times, task.kind),
                          {slice == 0 ? input : kNoTask, gathered}, task.chunk,
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

  bool gathersEachUse(int stage, const Task &task) const {
    return problem.gather == GatherRule::eachUse &&
           task.kind != TaskKind::weightGradient &&
           streams.chunk(stage, task.chunk).gather > Seconds{};
  }

  /// Returns the number of graph tasks for `task`: one per segment if
  /// communication can overlap single segments, else 1.
  int slicesOf(int stage, const Task &task) const {
    const Part &part = parts[numbers.partOf(stage, task)];
    bool cut = problem.overlap.gather && gathersEachUse(stage, task);
    cut |= task.kind == TaskKind::forward && !part.forwardSeen &&
           part.gathersBefore != kNoTask;
    cut |= problem.overlap.reduce && task.kind == finalKind &&
           streams.chunk(stage, task.chunk).reduce > Seconds{} &&
           (problem.reduce == ReduceRule::eachMicroBatch ||
            part.gradientsLeft == 1);
    // The last segment, which uses the tied embedding, completes its gradients
    // first.
    cut |= problem.overlap.reduce && problem.tied > Seconds{} &&
           task.kind == finalKind && part.gradientsLeft == 1 &&
           numbers.partOf(stage, task) + 1 == numbers.partCount();
    return cut ? std::max(1, streams.segmentCount(stage, task.chunk)) : 1;
  }

  /// Adds all-gathers for the next use and for `prefetch` further uses. The
  /// all-gather for use n waits for use n - 1 - prefetch, whose buffer the
  /// all-gather overwrites.
  void gatherAhead(int stage) {
    const std::vector<Task> &order = schedule[stage];
    StageProgress &mine = progress[stage];
    auto prefetch = std::size_t(problem.prefetch);
    while (mine.gathers.size() <= mine.uses.size() + prefetch &&
           mine.gatherPosition < order.size()) {
      const Task &task = order[mine.gatherPosition];
      int segments = streams.segmentCount(stage, task.chunk);
      if (mine.gatherSlice == segments || !gathersEachUse(stage, task)) {
        ++mine.gatherPosition;
        mine.gatherSlice = 0;
        continue;
      }
      int slice = mine.gatherSlice++;
      int segment =
          task.kind == TaskKind::forward ? slice : segments - 1 - slice;
      std::size_t number = mine.gathers.size();
      int freed =
          number <= prefetch ? kNoTask : mine.uses[number - 1 - prefetch];
      mine.gathers.push_back(
          streams.add(StepRole::gather, stage,
                      streams.segment(stage, task.chunk, segment).gather,
                      {freed}, task.chunk, task.microBatch, segment));
    }
  }

  /// Adds a reduction, if one is due, of the gradients that task `after`
  /// computes for `segment` (-1: for all segments). In the last micro-batch,
  /// also records the task that completes these gradients.
  void reduce(int stage, const Task &task, int segment, int after) {
    Part &part = partOf(stage, task.chunk);
    Seconds total = streams.chunk(stage, task.chunk).reduce;
    bool each = problem.reduce == ReduceRule::eachMicroBatch;
    bool last = part.gradientsLeft == 1;
    bool overlaps = problem.overlap.reduce;
    if (total > Seconds{} && (each || (last && overlaps)) &&
        (overlaps || segment <= 0)) {
      bool one = overlaps && segment >= 0;
      after = streams.add(
          StepRole::reduce, stage,
          one ? streams.segment(stage, task.chunk, segment).reduce : total,
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

  void send(int stage, const Task &task, int after) {
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
        after = streams.add(
            forward ? StepRole::sendForward : StepRole::sendBackward, stage,
            seconds, {after}, task.chunk, task.microBatch);
    }
    arrived[numbers.of(stage, task)] = after;
  }

  void finishStep() {
    int last = problem.shape.stages - 1;
    int lastChunk = problem.shape.chunks - 1;
    if (!problem.overlap.reduce && problem.reduce == ReduceRule::onceAStep)
      for (int stage = 0; stage <= last; ++stage)
        for (int chunk = lastChunk; chunk >= 0; --chunk)
          reduceAfterAll(stage, chunk);

    if (last > 0 && problem.tied > Seconds{})
      tied = streams.add(
          StepRole::tied, 0, problem.tied,
          {partOf(0, 0).reduced, partOf(last, lastChunk).lastSegment});
    if (problem.clipsGradients) {
      std::vector<int> gradients = {tied};
      for (const Part &part : parts)
        gradients.push_back(part.reduced);
      norm = streams.add(StepRole::norm, 0, problem.gradientNorm, gradients);
    }
    for (int stage = 0; stage <= last; ++stage)
      updateStage(stage);
  }

  void reduceAfterAll(int stage, int chunk) {
    Seconds seconds = streams.chunk(stage, chunk).reduce;
    if (seconds == Seconds{})
      return;
    Part &part = partOf(stage, chunk);
    part.reduced = streams.add(StepRole::reduce, stage, seconds, {}, chunk);
    part.lastSegment = part.reduced;
  }

  void updateStage(int stage) {
    int chunks = problem.shape.chunks;
    bool holdsTied = stage == 0 || stage + 1 == problem.shape.stages;
    std::vector<int> before = {holdsTied ? tied : kNoTask, norm};
    // Backward completes the gradients of the last chunk first.
    std::vector<int> ready(chunks);
    for (int chunk = chunks - 1; chunk >= 0; --chunk) {
      ready[chunk] = partOf(stage, chunk).reduced;
      before.push_back(ready[chunk]);
      Seconds seconds = problem.stages[stage].chunks[chunk].down;
      bool isTied = stage == 0 ? chunk == 0 : chunk + 1 == chunks;
      if (seconds > Seconds{})
        ready[chunk] = streams.add(
            StepRole::down, stage, seconds,
            {ready[chunk], holdsTied && isTied ? tied : kNoTask}, chunk);
    }
    streams.add(StepRole::update, stage, problem.stages[stage].update, before);
    auto onHost = [&](StepRole role, Seconds ChunkTimes::*times) {
      for (int chunk = chunks - 1; chunk >= 0; --chunk) {
        Seconds seconds = problem.stages[stage].chunks[chunk].*times;
        if (seconds > Seconds{})
          ready[chunk] = streams.add(role, stage, seconds,
                                     {ready[chunk], before[0], norm}, chunk);
      }
    };
    onHost(StepRole::hostUpdate, &ChunkTimes::hostUpdate);
    onHost(StepRole::up, &ChunkTimes::up);
  }

  Part &partOf(int stage, int chunk) {
    return parts[std::size_t(chunk) * problem.shape.stages + stage];
  }

  const StepProblem &problem;
  const Schedule &schedule;
  StepGraph &result;
  StepStreams streams;
  TaskNumbers numbers;
  TaskKind finalKind; ///< the kind that completes a micro-batch's gradients
  /// Holds, by task number, the graph task after which the receiver of the
  /// result can start.
  std::vector<int> arrived;
  std::vector<char> done; ///< by task number: whether the task has been added
  std::vector<StageProgress> progress;
  std::vector<Part> parts;
  int tied = kNoTask, norm = kNoTask; ///< graph tasks
};

} // namespace

StepGraph stepGraphOf(const StepProblem &problem, const Schedule &schedule,
                      bool describe) {
  StepGraph result;
  StepBuilder(problem, schedule, result, describe).run();
  return result;
}

} // namespace mtplan::planner
