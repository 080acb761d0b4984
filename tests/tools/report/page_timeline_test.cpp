//===- page_timeline_test.cpp - Simulated steps on the page ---------------===//

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/report/page/page.h"
#include "tools/report/page/plan_page.h"
#include "tools/report/page/timeline.h"

namespace {

using namespace mtplan::planner;
using namespace mtplan::tools;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

StepProblem problemOf(ScheduleShape shape, double forward, double backward) {
  SliceTimes slice;
  slice.forward = {forward};
  slice.backward = {backward};
  ChunkTimes chunk;
  chunk.slices = {slice};
  StageTimes stage;
  stage.chunks.assign(static_cast<std::size_t>(shape.chunks), chunk);
  StepProblem problem;
  problem.shape = shape;
  problem.stages.assign(static_cast<std::size_t>(shape.stages), stage);
  return problem;
}

StepResult simulated(const StepProblem &problem) {
  return simulateStep(problem, scheduleOf(problem.shape));
}

PageTimeline timelineOf(const StepProblem &problem) {
  return pageTimeline(problem, simulated(problem));
}

// Returns a step with 64 stages and 512 micro-batches, with everything
// overlapped.
StepProblem hugeProblem() {
  StepProblem problem = problemOf(
      {ScheduleKind::oneForwardOneBackward, 64, 1, 512}, 0.004, 0.008);
  for (StageTimes &stage : problem.stages) {
    stage.update = {0.006};
    stage.chunks[0].sendForward = stage.chunks[0].sendBackward = {0.0005};
    for (SliceTimes &slice : stage.chunks[0].slices) {
      slice.count = 2;
      slice.gather = {0.001};
      slice.reduce = {0.002};
    }
  }
  problem.gather = GatherRule::eachUse;
  problem.reduce = ReduceRule::eachMicroBatch;
  return problem;
}

TEST(PageTimelines, OneMicroBatchOfOneStage) {
  StepProblem problem =
      problemOf({ScheduleKind::oneForwardOneBackward, 1, 1, 1}, 1, 3);
  PageTimeline timeline = timelineOf(problem);
  EXPECT_EQ(timeline.end, 4);
  EXPECT_EQ(timeline.stages, 1);
  ASSERT_EQ(timeline.streams.size(), 1U);
  EXPECT_TRUE(timeline.streams[0].isCompute);
  std::string figure = timelineFigure(timeline);
  // The boxes take a quarter of the axis and the rest, over the whole height.
  EXPECT_THAT(figure, HasSubstr("class=\"c0\" data-k=\"forward\" "
                                "data-t=\"0\" d=\"M0 0h250000v18H0z\""));
  EXPECT_THAT(figure,
              HasSubstr("class=\"c1\" data-k=\"backward\" "
                        "data-t=\"0\" d=\"M250000 0h750000v18H250000z\""));
  EXPECT_THAT(figure, HasSubstr("data-n=\"stage 0, compute\""));
}

TEST(PageTimelines, StreamsAreNamedByWhatRunsOnThem) {
  StepProblem problem = problemOf({ScheduleKind::zeroBubble, 2, 1, 2}, 1, 2);
  for (StageTimes &stage : problem.stages) {
    stage.update = {1};
    stage.chunks[0].sendForward = stage.chunks[0].sendBackward = {0.5};
    for (SliceTimes &slice : stage.chunks[0].slices) {
      slice.weightGradient = {1};
      slice.gather = slice.reduce = {0.25};
    }
  }
  std::vector<std::pair<int, std::string>> names;
  for (const PageStream &stream : timelineOf(problem).streams)
    names.emplace_back(stream.stage, stream.name);
  EXPECT_THAT(
      names, ElementsAre(std::pair(0, "compute"), std::pair(0, "send forward"),
                         std::pair(0, "gather, reduce"),
                         std::pair(1, "compute"), std::pair(1, "send backward"),
                         std::pair(1, "gather, reduce")));
}

TEST(PageTimelines, WordsSayMicroBatchAndChunk) {
  StepProblem problem = problemOf({ScheduleKind::interleaved, 2, 2, 2}, 1, 2);
  std::string figure = timelineFigure(timelineOf(problem));
  // Both micro-batches of the first virtual stage come first, then both of the
  // second.
  EXPECT_THAT(figure,
              HasSubstr("data-k=\"forward\" data-t=\"0.0 1.0 0.1 1.1\""));
}

TEST(PageTimelines, StagesAddUpToTheStep) {
  StepProblem problem = hugeProblem();
  problem.shape.microBatches = 70;
  StepResult result = simulated(problem);
  PageBars bars = pageStages(problem, result);
  ASSERT_EQ(bars.bars.size(), 64U);
  for (const PageBar &bar : bars.bars) {
    double sum = 0;
    for (double part : bar.parts)
      sum += part;
    EXPECT_NEAR(sum, result.step.value, 1e-9);
  }
  EXPECT_EQ(bars.bars[0].note,
            "64"); // 1f1b keeps p - i micro-batches in flight
  EXPECT_EQ(bars.bars[63].note, "1");
}

// The area of a kind's boxes is the time of its tasks, also if tasks are
// merged, and boxes of a stream do not overlap.
void expectTrue(const PageTimeline &timeline, const TimelineBoxes &boxes) {
  for (const TimelineLane &lane : boxes.lanes) {
    std::map<int, std::pair<double, int>> drawn, real;
    double before = 0, start = -1;
    for (const TimelineBox &box : lane.boxes) {
      drawn[box.kind].first += box.height * (box.finish - box.start);
      drawn[box.kind].second += box.tasks;
      EXPECT_TRUE(box.start >= before - 1e-9 || box.start == start);
      EXPECT_LE(box.top + box.height, 1 + 1e-9);
      start = box.start;
      before = std::max(before, box.finish);
    }
    for (const PageTask &task : lane.stream->tasks)
      if (isDrawn(timeline, task)) {
        real[task.kind].first += task.finish - task.start;
        ++real[task.kind].second;
      }
    ASSERT_EQ(drawn.size(), real.size());
    for (const auto &[kind, both] : real) {
      EXPECT_NEAR(drawn[kind].first, both.first, 1e-9 * timeline.end);
      EXPECT_EQ(drawn[kind].second, both.second);
    }
  }
}

std::size_t countOf(const TimelineBoxes &boxes) {
  std::size_t count = 0;
  for (const TimelineLane &lane : boxes.lanes)
    count += lane.boxes.size();
  return count;
}

TEST(PageTimelines, MergedBoxesKeepTheTime) {
  PageTimeline timeline = timelineOf(hugeProblem());
  TimelineBoxes boxes = boxesOf(timeline);
  EXPECT_GT(boxes.group, 1);
  EXPECT_EQ(boxes.stages, 64);
  EXPECT_EQ(boxes.detailed, 4);
  EXPECT_LE(countOf(boxes), 6000U);
  expectTrue(timeline, boxes);
  // The bubble between the last warm-up forward and the first backward stays
  // empty. Meanwhile, the later stages run the first micro-batch.
  const std::vector<PageTask> &tasks = timeline.streams[0].tasks;
  std::size_t away = 1;
  while (tasks[away].start - tasks[away - 1].finish < 0.1)
    ++away;
  for (const TimelineBox &box : boxes.lanes[0].boxes)
    EXPECT_TRUE(box.finish <= tasks[away - 1].finish + 1e-9 ||
                box.start >= tasks[away].start - 1e-9);
}

TEST(PageTimelines, HugeStepMakesASmallPage) {
  StepProblem problem = hugeProblem();
  StepResult result = simulated(problem);
  EXPECT_GT(result.tasks.size(), 250000U);
  Page page;
  page.timeline = pageTimeline(problem, result);
  page.stages = pageStages(problem, result);
  std::string html = htmlOf(page);
  EXPECT_LT(html.size(), 400000U);
  EXPECT_EQ(html, htmlOf(page));
  EXPECT_THAT(html, HasSubstr("Streams beside compute are drawn for 4 of "
                              "them."));
  EXPECT_THAT(html, HasSubstr("between them a box is up to"));
}

// A bubble stays visible among merged tasks.
TEST(PageTimelines, DoesNotMergeAcrossALongWait) {
  PageTimeline timeline;
  timeline.kinds = {{"a", 0}};
  timeline.stages = 1;
  timeline.end = 20100;
  PageStream stream{0, "s", true, {}};
  for (int i = 0; i < 20000; ++i) {
    double start = i < 9001 ? i : i + 100;
    stream.tasks.push_back({start, start + 1, 0, -1, i, -1});
  }
  timeline.streams = {stream};
  TimelineBoxes boxes = boxesOf(timeline);
  EXPECT_GT(boxes.group, 1);
  expectTrue(timeline, boxes);
  for (const TimelineBox &box : boxes.lanes[0].boxes)
    EXPECT_TRUE(box.finish <= 9001 || box.start >= 9101) << box.start;
}

// Long waits between all tasks do not prevent merging.
TEST(PageTimelines, MergesDistantTasks) {
  PageTimeline timeline;
  timeline.kinds = {{"a", 0}, {"b", 1}};
  timeline.stages = 1;
  timeline.end = 1e6;
  PageStream stream{0, "s", true, {}};
  for (int i = 0; i < 100000; ++i)
    stream.tasks.push_back({10.0 * i, 10.0 * i + 1, i / 5 % 2, -1, i, -1});
  timeline.streams = {stream};
  TimelineBoxes boxes = boxesOf(timeline);
  EXPECT_LE(countOf(boxes), 6000U);
  expectTrue(timeline, boxes);
}

TEST(PageTimelines, NamesHiddenStagesAndStreams) {
  PageTimeline timeline;
  timeline.kinds = {{"a", 0}};
  timeline.stages = 1000;
  timeline.end = 2;
  for (int stage = 0; stage < 1000; ++stage)
    for (int stream = 0; stream < 9; ++stream)
      timeline.streams.push_back({stage, "s", stream == 0, {{0, 1, 0}}});
  std::string figure = timelineFigure(timeline);
  EXPECT_THAT(figure, HasSubstr("64 of 1000 stages are drawn"));
  EXPECT_LT(figure.size(), 60000U);
  EXPECT_THAT(timelineTables(timeline), HasSubstr("and 400 more rows"));
}

TEST(PageTimelines, NothingToDraw) {
  PageTimeline timeline;
  timeline.stages = 3;
  EXPECT_THAT(timelineFigure(timeline), HasSubstr("No task of the step"));
  timeline.end = 1;
  timeline.kinds = {{"a", 77}};
  timeline.streams = {{0, "s", true, {{0.5, 0.5, 0}, {0, 1, 3}, {0.2, 7, 0}}},
                      {9, "of no stage", true, {{0, 1, 0}}}};
  EXPECT_THAT(timelineFigure(timeline), HasSubstr("No task of the step"));
  EXPECT_THAT(timelineTables(timeline), Not(IsEmpty()));
}

} // namespace
