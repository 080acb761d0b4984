//===- step_pipeline_test.cpp - Bubbles and messages -------------===//
//
// Compares steps with closed forms of the papers that introduce the schedules
// (H1 to H8 of docs/closed-forms.md), and with a recursion over uneven stages
// that shares only the schedule with the simulator.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "tests/planner/simulate/step_problem.h"

namespace mtplan::planner {
namespace {

using enum ScheduleKind;

/// Returns the bubble of the first stage relative to its compute, which is the
/// ideal time. The problem must have no other times.
double bubbleOf(const StepProblem &problem) {
  StepResult result = simulated(problem);
  return result.stages[0].bubble / result.stages[0].busy;
}

// H3: a step takes 14 slots. Every stage is idle in 6 of them and has 4
// micro-batches in flight.
TEST(StepPipeline, GPipeOfFourByFour) {
  StepResult result = simulated(equalStages({gpipe, 4, 1, 4}, 1.0, 1.0));
  EXPECT_EQ(result.step.value, 14.0);
  for (const StageUse &stage : result.stages) {
    EXPECT_EQ(stage.bubble.value, 6.0);
    EXPECT_EQ(stage.busy.value, 8.0);
    EXPECT_EQ(stage.inFlight.full, 4);
  }
}

// H4: the bubble is (p - 1) / m of the ideal for any time of backward.
TEST(StepPipeline, BubbleFallsWithMicroBatches) {
  for (ScheduleKind kind : {gpipe, oneForwardOneBackward})
    for (double backward : {1.0, 2.0, 3.0}) {
      auto bubble = [&](int m) {
        return bubbleOf(equalStages({kind, 4, 1, m}, 1.0, backward));
      };
      EXPECT_DOUBLE_EQ(bubble(1), 3.0);
      EXPECT_DOUBLE_EQ(bubble(4), 0.75);
      EXPECT_DOUBLE_EQ(bubble(32), 0.09375);
    }
}

TEST(StepPipeline, OneForwardOneBackwardBubble) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 20; ++m)
      EXPECT_DOUBLE_EQ(
          bubbleOf(equalStages({oneForwardOneBackward, p, 1, m}, 1.0, 2.0)),
          double(p - 1) / m)
          << p << " stages, " << m << " micro-batches";
}

// H6: the bubble is (p - 1) / (v m) (Narayanan et al. 2021, section 2.2.2).
TEST(StepPipeline, InterleavedBubble) {
  EXPECT_DOUBLE_EQ(bubbleOf(equalStages({interleaved, 4, 2, 8}, 1.0, 2.0)),
                   0.1875);
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p)
        EXPECT_DOUBLE_EQ(
            bubbleOf(equalStages({interleaved, p, v, m}, 1.0, 2.0)),
            double(p - 1) / (v * m))
            << p << " stages, " << v << " chunks, " << m << " micro-batches";
}

// H1: one of p stages is busy at a time.
TEST(StepPipeline, OneMicroBatchUsesOneStageAtATime) {
  for (int p = 1; p <= 8; ++p) {
    StepResult result =
        simulated(equalStages({oneForwardOneBackward, p, 1, 1}, 1.0, 2.0));
    for (const StageUse &stage : result.stages)
      EXPECT_DOUBLE_EQ(stage.busy / result.step, 1.0 / p);
  }
}

// The bubble is (p - 1)(F + B - W) (Qi et al. 2023, table 2), a third of 1F1B's
// if all three are equal. The other two cases have W < F < B and B + W = 2 F,
// as in the paper.
TEST(StepPipeline, ZeroBubbleH1Bubble) {
  struct Times {
    double f, b, w;
  };
  for (Times t : {Times{1, 1, 1}, Times{10, 11, 9}, Times{10, 12, 8}})
    for (int p = 1; p <= 8; ++p)
      for (int m = 2 * p; m <= 4 * p; ++m) {
        StepResult result =
            simulated(equalStages({zeroBubble, p, 1, m}, t.f, t.b + t.w, t.w));
        double ideal = m * (t.f + t.b + t.w);
        EXPECT_DOUBLE_EQ(result.step.value - ideal, (p - 1) * (t.f + t.b - t.w))
            << p << " stages, " << m << " micro-batches, W " << t.w;
      }
}

// H8: stages exchange 2 m (p - 1) messages, or 2 m (p v - 1) if interleaved.
TEST(StepPipeline, MessagesPassEachBoundaryTwice) {
  for (int p = 2; p <= 5; ++p)
    for (int m = p; m <= 4 * p; m += p) {
      for (ScheduleKind kind : {gpipe, oneForwardOneBackward, zeroBubble})
        EXPECT_EQ(simulated(equalStages({kind, p, 1, m}, 1, 2, 1)).messages,
                  2 * m * (p - 1));
      for (int v = 1; v <= 3; ++v) {
        StepProblem problem = equalStages({interleaved, p, v, m}, 1, 2);
        for (StageTimes &stage : problem.stages)
          for (ChunkTimes &chunk : stage.chunks)
            chunk.sendForward = chunk.sendBackward = {0.5};
        StepResult result = simulated(problem);
        EXPECT_EQ(result.messages, 2 * m * (p * v - 1));
        EXPECT_EQ(
            std::ranges::count_if(result.tasks,
                                  [](const StepTask &task) {
                                    return task.role == StepRole::sendForward ||
                                           task.role == StepRole::sendBackward;
                                  }),
            result.messages);
      }
    }
  EXPECT_EQ(simulated(equalStages({interleaved, 1, 3, 2}, 1, 2)).messages, 0);
}

/// Computes the end of each task by recursion over the tasks that it needs.
class Recursion {
public:
  explicit Recursion(const StepProblem &theProblem)
      : problem(theProblem), schedule(scheduleOf(theProblem.shape)) {}

  double step() {
    double end = 0.0;
    for (int stage = 0; stage < problem.shape.stages; ++stage)
      for (int i = 0; i < int(schedule[stage].size()); ++i)
        end = std::max({end, freeAfter(stage, i), sent(stage, i)});
    return end;
  }

private:
  double duration(int stage, const Task &task) const {
    double sum = 0.0;
    for (const SliceTimes &s :
         problem.stages[stage].chunks[task.chunk].slices) {
      bool split = problem.shape.kind == zeroBubble;
      double w = s.weightGradient.value, b = s.backward.value;
      sum += s.count * (task.kind == TaskKind::forward    ? s.forward.value
                        : task.kind == TaskKind::backward ? b - (split ? w : 0)
                                                          : w);
    }
    return sum;
  }
  int partOf(int stage, const Task &task) const {
    return stage + task.chunk * problem.shape.stages;
  }
  /// Returns the send time of the task's result; negative if it is not sent.
  double sendTime(int stage, const Task &task) const {
    int last = problem.shape.stages * problem.shape.chunks - 1;
    int part = partOf(stage, task);
    const ChunkTimes &chunk = problem.stages[stage].chunks[task.chunk];
    bool local = problem.shape.stages == 1;
    if (task.kind == TaskKind::forward && part < last)
      return local ? 0.0 : chunk.sendForward.value;
    if (task.kind == TaskKind::backward && part > 0)
      return local ? 0.0 : chunk.sendBackward.value;
    return -1.0;
  }
  double computed(int stage, int i) {
    auto [at, isNew] = memo.try_emplace({stage, i}, 0.0);
    if (!isNew)
      return at->second;
    const Task &task = schedule[stage][i];
    double start = i == 0 ? 0.0 : freeAfter(stage, i - 1);
    int feeder =
        partOf(stage, task) + (task.kind == TaskKind::forward ? -1 : 1);
    int parts = problem.shape.stages * problem.shape.chunks;
    if (task.kind != TaskKind::weightGradient && feeder >= 0 &&
        feeder < parts) {
      int from = feeder % problem.shape.stages;
      const std::vector<Task> &order = schedule[from];
      Task needed{task.kind, feeder / problem.shape.stages, task.microBatch};
      start = std::max(start, sent(from, int(std::ranges::find(order, needed) -
                                             order.begin())));
    }
    return memo[{stage, i}] = start + duration(stage, task);
  }
  double freeAfter(int stage, int i) {
    double end = computed(stage, i);
    return problem.overlap.pointToPoint
               ? end
               : end + std::max(0.0, sendTime(stage, schedule[stage][i]));
  }
  /// Returns when the task's result has arrived.
  double sent(int stage, int i) {
    const Task &task = schedule[stage][i];
    double seconds = sendTime(stage, task);
    double end = computed(stage, i);
    if (seconds <= 0.0)
      return end;
    if (!problem.overlap.pointToPoint)
      return end + seconds;
    for (int before = i; before-- > 0;)
      if (schedule[stage][before].kind == task.kind &&
          sendTime(stage, schedule[stage][before]) > 0.0)
        return std::max(end, sent(stage, before)) + seconds;
    return end + seconds;
  }

  const StepProblem &problem;
  Schedule schedule;
  std::map<std::pair<int, int>, double> memo;
};

TEST(StepPipeline, UnevenStagesEqualTheRecursion) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    StepProblem problem = randomPipeline(random);
    EXPECT_EQ(simulated(problem).step.value, Recursion(problem).step())
        << "round " << round;
  }
}

} // namespace
} // namespace mtplan::planner
