//===- schedule_test.cpp - Orders of pipeline stages -------------===//

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/simulate/schedule_check.h"

namespace mtplan::planner {
namespace {

using enum ScheduleKind;
using testing::ElementsAre;
using testing::HasSubstr;

/// Returns an order as text: kind and micro-batch as "F0 B0 W0", with chunks as
/// "F0.1".
std::string written(const std::vector<Task> &order, bool chunks = false) {
  std::string text;
  for (const Task &task : order) {
    text += text.empty() ? "" : " ";
    text += "FBW"[int(task.kind)] + std::to_string(task.microBatch);
    if (chunks)
      text += "." + std::to_string(task.chunk);
  }
  return text;
}

/// Returns every shape up to 6 stages, 3 chunks and 20 micro-batches that has a
/// schedule.
std::vector<ScheduleShape> allShapes() {
  std::vector<ScheduleShape> shapes;
  for (ScheduleKind kind :
       {gpipe, oneForwardOneBackward, interleaved, zeroBubble})
    for (int stages = 1; stages <= 6; ++stages)
      for (int chunks = 1; chunks <= 3; ++chunks)
        for (int m = 1; m <= 20; ++m) {
          ScheduleShape shape{kind, stages, chunks, m};
          if (check(shape).empty())
            shapes.push_back(shape);
        }
  return shapes;
}

std::string named(const ScheduleShape &shape) {
  return std::string(nameOf(shape.kind)) +
         " p=" + std::to_string(shape.stages) +
         " v=" + std::to_string(shape.chunks) +
         " m=" + std::to_string(shape.microBatches);
}

/// Returns the greatest number of pairs of micro-batch and chunk in flight,
/// counted over the order. Weight gradients free the activations in a
/// zero-bubble order, and backward in others.
int mostInTotal(const std::vector<Task> &order) {
  const TaskKind freeing =
      std::ranges::count(order, TaskKind::weightGradient, &Task::kind) > 0
          ? TaskKind::weightGradient
          : TaskKind::backward;
  int now = 0, most = 0;
  for (const Task &task : order) {
    now += task.kind == TaskKind::forward ? 1 : 0;
    now -= task.kind == freeing ? 1 : 0;
    most = std::max(most, now);
  }
  return most;
}

TEST(Schedule, GPipeRunsBackwardsInReverse) {
  for (const std::vector<Task> &order : scheduleOf({gpipe, 4, 1, 4}))
    EXPECT_EQ(written(order), "F0 F1 F2 F3 B3 B2 B1 B0");
}

// The orders are in Narayanan et al. 2021, figure 4 top.
TEST(Schedule, OneForwardOneBackward) {
  Schedule schedule = scheduleOf({oneForwardOneBackward, 4, 1, 8});
  EXPECT_EQ(written(schedule[0]),
            "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  EXPECT_EQ(written(schedule[2]),
            "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  EXPECT_EQ(written(schedule[3]),
            "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST(Schedule, FewMicroBatchesAreAllWarmUp) {
  Schedule schedule = scheduleOf({oneForwardOneBackward, 4, 1, 2});
  EXPECT_EQ(written(schedule[0]), "F0 F1 B0 B1");
  EXPECT_EQ(written(schedule[3]), "F0 B0 F1 B1");
}

// The orders are in Narayanan et al. 2021, figure 4 bottom: 4 devices, 2 chunks
// (dark and light blue) and 8 micro-batches.
TEST(Schedule, InterleavedAsInMegatron) {
  Schedule schedule = scheduleOf({interleaved, 4, 2, 8});
  EXPECT_EQ(written(schedule[0], true),
            "F0.0 F1.0 F2.0 F3.0 F0.1 F1.1 F2.1 F3.1 F4.0 F5.0 F6.0 B0.1 F7.0 "
            "B1.1 F4.1 B2.1 F5.1 B3.1 F6.1 B0.0 F7.1 B1.0 B2.0 B3.0 B4.1 B5.1 "
            "B6.1 B7.1 B4.0 B5.0 B6.0 B7.0")
      << "10 warm-up forwards";
  EXPECT_EQ(written(schedule[3], true),
            "F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 F4.0 "
            "B0.0 F5.0 B1.0 F6.0 B2.0 F7.0 B3.0 F4.1 B4.1 F5.1 B5.1 F6.1 B6.1 "
            "F7.1 B7.1 B4.0 B5.0 B6.0 B7.0")
      << "4 warm-up forwards";
}

// The orders are those of devices 1, 2 and 4 in Qi et al. 2023, figure 3 top.
TEST(Schedule, ZeroBubbleH1) {
  Schedule schedule = scheduleOf({zeroBubble, 4, 1, 8});
  EXPECT_EQ(written(schedule[0]),
            "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 "
            "B7 W7");
  EXPECT_EQ(written(schedule[1]),
            "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 "
            "W6 W7");
  EXPECT_EQ(written(schedule[3]),
            "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 "
            "W6 W7");
}

TEST(Schedule, AllShapesPassTheCheck) {
  for (const ScheduleShape &shape : allShapes())
    EXPECT_THAT(checkSchedule(shape, scheduleOf(shape)), testing::IsEmpty())
        << named(shape);
}

TEST(Schedule, ShapesWithoutScheduleAreRejected) {
  EXPECT_THAT(check({interleaved, 4, 2, 6}),
              ElementsAre("schedule interleaved takes micro-batches in groups "
                          "of 4 (one per stage), got 6; nearest: 4 or 8"));
  EXPECT_THAT(check({interleaved, 4, 2, 3}),
              ElementsAre(HasSubstr("got 3; nearest: 4")));
  EXPECT_THAT(check({oneForwardOneBackward, 4, 2, 8}),
              ElementsAre("schedule 1f1b takes 1 chunk per stage, got 2; only "
                          "interleaved takes more"));
  EXPECT_THAT(check({gpipe, 0, -1, 0}),
              ElementsAre("a pipeline needs at least 1 stage, got 0",
                          "a pipeline needs at least 1 chunk per stage, got -1",
                          "a pipeline needs at least 1 micro-batch, got 0"));
  EXPECT_THAT(check({gpipe, 1 << 16, 1, 1 << 16}),
              ElementsAre(HasSubstr("at most 268435455")));
  EXPECT_THAT(check({interleaved, 4, 2, 8}), testing::IsEmpty());
}

TEST(InFlight, ClosedFormEqualsTheCount) {
  for (const ScheduleShape &shape : allShapes()) {
    Schedule schedule = scheduleOf(shape);
    for (int stage = 0; stage < shape.stages; ++stage) {
      EXPECT_EQ(inFlight(shape, stage), inFlight(schedule[stage]))
          << named(shape) << " stage " << stage;
      // The peak of all activations equals the total of both kinds in
      // inFlight().
      EXPECT_EQ(mostInTotal(schedule[stage]), inFlight(shape, stage).total())
          << named(shape) << " stage " << stage;
    }
  }
}

TEST(InFlight, EqualsPublishedCounts) {
  // On stage i of p, 1F1B has min(m, p - i) micro-batches in flight, and GPipe
  // m.
  EXPECT_EQ(inFlight({oneForwardOneBackward, 4, 1, 8}, 0).full, 4);
  EXPECT_EQ(inFlight({oneForwardOneBackward, 4, 1, 8}, 3).full, 1);
  EXPECT_EQ(inFlight({oneForwardOneBackward, 4, 1, 2}, 1).full, 2);
  EXPECT_EQ(inFlight({gpipe, 4, 1, 8}, 3).full, 8);
  // Megatron-LM has 2 (p - i - 1) + (v - 1) p + 1 chunks in flight; on stage 0
  // that is 1 + (p - 1) / (p v) times p micro-batches, or 11 halves for p = 4
  // and v = 2.
  EXPECT_EQ(inFlight({interleaved, 4, 2, 8}, 0).full, 11);
  EXPECT_EQ(inFlight({interleaved, 4, 2, 8}, 3).full, 5);
  EXPECT_EQ(inFlight({interleaved, 4, 2, 4}, 0).full, 8);
  // ZB-H1 has as many micro-batches before backward as 1F1B, and no stage holds
  // more in total than the first.
  InFlight third = inFlight({zeroBubble, 4, 1, 8}, 2);
  EXPECT_EQ(third.full, 2);
  EXPECT_EQ(third.weightOnly, 2);
  EXPECT_EQ(inFlight({zeroBubble, 4, 1, 8}, 0).total(), 4);
}

} // namespace
} // namespace mtplan::planner
