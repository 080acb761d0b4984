//===- schedule_check_test.cpp - Broken orders -------------------===//
//
// checkSchedule() tries one interleaving of the stages. These tests execute
// schedules with all interleavings, and with queues of messages between stages.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/simulate/schedule_check.h"

namespace mtplan::planner {
namespace {

using enum ScheduleKind;
using testing::ElementsAre;
using testing::HasSubstr;

/// Holds the number of tasks that each stage has done, and the contents of the
/// queues. A message is (part, micro-batch); a queue is (from, to, kind).
struct World {
  std::vector<std::size_t> position;
  std::map<std::tuple<int, int, int>, std::deque<std::pair<int, int>>> queues;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const World &) const = default;
};

class Executor {
public:
  Executor(const ScheduleShape &theShape, const Schedule &theSchedule)
      : shape(theShape), schedule(theSchedule) {}

  /// Returns whether every interleaving ends with all tasks done.
  bool alwaysFinishes() {
    World world;
    world.position.resize(shape.stages);
    explore(world);
    return !stuck;
  }

private:
  void explore(const World &world) {
    if (stuck || !seen.insert(world).second)
      return;
    bool finished = true, moved = false;
    for (int stage = 0; stage < shape.stages; ++stage) {
      if (world.position[stage] == schedule[stage].size())
        continue;
      finished = false;
      World after = world;
      if (step(after, stage)) {
        moved = true;
        explore(after);
      }
    }
    stuck |= !finished && !moved;
  }

  bool step(World &world, int stage) {
    const Task &task = schedule[stage][world.position[stage]];
    int kind = int(task.kind);
    int last = shape.stages * shape.chunks - 1;
    int part = task.chunk * shape.stages + stage;
    int step = task.kind == TaskKind::forward ? 1 : -1;
    if (task.kind != TaskKind::forward &&
        !did(world, stage, {TaskKind(kind - 1), task.chunk, task.microBatch}))
      return false;
    if (task.kind != TaskKind::weightGradient) {
      int from = part - step, to = part + step;
      if (from >= 0 && from <= last) {
        int sender = from % shape.stages;
        if (sender == stage) {
          if (!did(world, stage,
                   {task.kind, from / shape.stages, task.microBatch}))
            return false;
        } else {
          auto &queue = world.queues[{sender, stage, kind}];
          if (queue.empty() ||
              queue.front() != std::pair(from, task.microBatch))
            return false;
          queue.pop_front();
        }
      }
      if (to >= 0 && to <= last && to % shape.stages != stage)
        world.queues[{stage, to % shape.stages, kind}].push_back(
            {part, task.microBatch});
    }
    ++world.position[stage];
    return true;
  }

  bool did(const World &world, int stage, const Task &task) const {
    auto end = schedule[stage].begin() + std::ptrdiff_t(world.position[stage]);
    return std::find(schedule[stage].begin(), end, task) != end;
  }

  const ScheduleShape &shape;
  const Schedule &schedule;
  std::set<World> seen;
  bool stuck = false;
};

TEST(ScheduleCheck, AgreesWithExecution) {
  std::mt19937_64 random(1);
  int finished = 0, stuck = 0;
  std::vector<ScheduleShape> shapes = {
      {gpipe, 1, 1, 3},       {gpipe, 2, 1, 2},
      {gpipe, 3, 1, 2},       {oneForwardOneBackward, 2, 1, 3},
      {zeroBubble, 2, 1, 2},  {zeroBubble, 3, 1, 1},
      {interleaved, 2, 2, 2}, {interleaved, 1, 3, 1},
      {interleaved, 1, 2, 2}, {interleaved, 3, 1, 3}};
  for (const ScheduleShape &shape : shapes)
    for (int round = 0; round < 300; ++round) {
      Schedule schedule = scheduleOf(shape);
      // Disturbs an order by a few swaps, which often leave it valid, or
      // shuffles it.
      int swaps = round % 10;
      for (int i = 0; i < swaps; ++i) {
        std::vector<Task> &order = schedule[random() % schedule.size()];
        std::size_t at = random() % (order.size() - 1);
        std::swap(order[at], order[at + 1]);
      }
      if (round % 10 == 9)
        for (std::vector<Task> &order : schedule)
          std::ranges::shuffle(order, random);
      bool runs = Executor(shape, schedule).alwaysFinishes();
      EXPECT_EQ(checkSchedule(shape, schedule).empty(), runs)
          << nameOf(shape.kind) << " " << shape.stages << " stages, round "
          << round;
      ++(runs ? finished : stuck);
    }
  // Both outcomes occurred often.
  EXPECT_GT(finished, 300);
  EXPECT_GT(stuck, 300);
}

TEST(ScheduleCheck, NamesMissingAndRepeatedTasks) {
  ScheduleShape shape{oneForwardOneBackward, 2, 1, 2};
  Schedule schedule = scheduleOf(shape);
  ASSERT_EQ(schedule[1][2], (Task{TaskKind::forward, 0, 1}));
  schedule[1][2] = {TaskKind::forward, 0, 0};
  EXPECT_THAT(
      checkSchedule(shape, schedule),
      ElementsAre("the forward of micro-batch 0, chunk 0, of stage 1, is there "
                  "twice",
                  "the forward of micro-batch 1, chunk 0, of stage 1, is "
                  "missing"));
  schedule[1][2] = {TaskKind::forward, 0, 2};
  EXPECT_THAT(checkSchedule(shape, schedule),
              ElementsAre(HasSubstr("there is no forward of micro-batch 2"),
                          HasSubstr("missing")));
  schedule[1][2] = {TaskKind::weightGradient, 0, 1};
  EXPECT_THAT(checkSchedule(shape, schedule),
              ElementsAre(HasSubstr("there is no weight gradient"),
                          HasSubstr("missing")));
  schedule.pop_back();
  EXPECT_THAT(checkSchedule(shape, schedule),
              ElementsAre("a schedule of 2 stages needs as many orders, got "
                          "1"));
  EXPECT_THAT(checkSchedule({gpipe, 2, 2, 2}, schedule),
              ElementsAre(HasSubstr("takes 1 chunk per stage")));
}

TEST(ScheduleCheck, NamesBothEndsOfAChannel) {
  ScheduleShape shape{gpipe, 2, 1, 2};
  Schedule schedule = scheduleOf(shape);
  std::swap(schedule[1][0], schedule[1][1]);
  EXPECT_THAT(checkSchedule(shape, schedule),
              ElementsAre("stage 1 wants the result of forward of micro-batch "
                          "1, chunk 0, where stage 0 sends that of forward of "
                          "micro-batch 0, chunk 0"));
}

TEST(ScheduleCheck, NamesBlockedTasks) {
  ScheduleShape shape{oneForwardOneBackward, 2, 1, 2};
  Schedule schedule = scheduleOf(shape);
  // Stage 0 waits for a gradient before it sends the second micro-batch, and
  // stage 1 receives this micro-batch before it computes the gradient.
  schedule[0] = {{TaskKind::forward, 0, 0},
                 {TaskKind::backward, 0, 0},
                 {TaskKind::forward, 0, 1},
                 {TaskKind::backward, 0, 1}};
  schedule[1] = {{TaskKind::forward, 0, 0},
                 {TaskKind::forward, 0, 1},
                 {TaskKind::backward, 0, 0},
                 {TaskKind::backward, 0, 1}};
  EXPECT_THAT(
      checkSchedule(shape, schedule),
      ElementsAre("deadlock: the backward of micro-batch 0, chunk 0, of stage "
                  "0, waits for the backward of micro-batch 0, chunk 0, of "
                  "stage 1",
                  "deadlock: the forward of micro-batch 1, chunk 0, of stage "
                  "1, waits for the forward of micro-batch 1, chunk 0, of "
                  "stage 0"));
}

} // namespace
} // namespace mtplan::planner
