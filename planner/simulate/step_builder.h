//===- step_builder.h - Makes the tasks of one training step ----*- C++ -*-===//
//
// Walks all stages' orders at once, each as far as its messages have come, so
// that every task is added after those it depends on.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_BUILDER_H
#define MTPLAN_PLANNER_SIMULATE_STEP_BUILDER_H

#include "planner/simulate/step_streams.h"
#include "planner/simulate/task_numbers.h"

namespace mtplan::planner {

inline constexpr int kNoTask = -1;

/// A stage on its way through its order.
struct StageProgress {
  std::size_t next = 0; ///< position of the first task not added yet
  /// Uses of gathered segments, as tasks, and the gathers that serve them;
  /// gathers run ahead of uses.
  std::vector<int> uses, gathers;
  std::size_t gatherPosition = 0; ///< of the task to gather for next,
  int gatherPiece = 0;            ///< and which of its segments, in its order
};

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

  void run();

private:
  /// Of one part of the model.
  struct Part {
    int gathersBefore = kNoTask; ///< first of its segments' gathers, beforeStep
    bool forwardSeen = false;
    int gradientsLeft = 0;     ///< micro-batches whose gradients are to come
    int reduced = kNoTask;     ///< task after which all its gradients are there
    int lastSegment = kNoTask; ///< the same of its last segment, the first done
  };

  void gatherBeforeStep();
  bool isReady(int stage, const Task &task) const;
  void addTask(int stage, const Task &task);
  bool gathersEachUse(int stage, const Task &task) const;
  int piecesOf(int stage, const Task &task) const;
  void gatherAhead(int stage);
  void reduce(int stage, const Task &task, int segment, int after);
  void send(int stage, const Task &task, int after);
  void finishStep();
  void reduceAfterAll(int stage, int chunk);
  void updateStage(int stage);

  Part &partOf(int stage, int chunk) {
    return parts[std::size_t(chunk) * problem.shape.stages + stage];
  }

  const StepProblem &problem;
  const Schedule &schedule;
  StepGraph &result;
  StepStreams streams;
  TaskNumbers numbers;
  TaskKind finalKind;       ///< after which a micro-batch's gradients are there
  std::vector<int> arrived; ///< by task number: what its receiver waits for
  std::vector<char> done;   ///< by task number
  std::vector<StageProgress> progress;
  std::vector<Part> parts;
  int tied = kNoTask, norm = kNoTask; ///< tasks
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_BUILDER_H
