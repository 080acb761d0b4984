//===- page_parts_test.cpp - The planner's numbers on the page ------------===//

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/report/page/plan_page.h"

namespace {

using namespace mtplan::planner;
using namespace mtplan::tools;
using testing::ElementsAre;

std::vector<std::string> namesOf(const PageBars &bars) {
  std::vector<std::string> names;
  for (const PagePart &part : bars.parts)
    names.push_back(part.name);
  return names;
}

TEST(PageParts, StepHasTheTermsThatTakeTime) {
  StepTime time;
  time.compute = {7};
  time.pipeline = {2};
  time.update = {1};
  time.step = {10};
  PageBars bars = pageStep(time);
  EXPECT_THAT(namesOf(bars), ElementsAre("compute", "pipeline", "update"));
  EXPECT_THAT(bars.bars[0].parts, ElementsAre(7, 2, 1));
  EXPECT_EQ(bars.bars[0].total, 10);
}

TEST(PageParts, StepHasAllTerms) {
  StepTime time;
  for (Seconds StepTime::*term :
       {&StepTime::compute, &StepTime::local, &StepTime::tensor,
        &StepTime::context, &StepTime::exchange, &StepTime::data,
        &StepTime::update, &StepTime::host, &StepTime::launch,
        &StepTime::pipeline}) {
    time.*term = {1};
    time.step += {1};
  }
  PageBars bars = pageStep(time);
  double sum = 0;
  for (double part : bars.bars[0].parts)
    sum += part;
  EXPECT_EQ(sum, time.step.value);
  std::set<int> colours;
  for (const PagePart &part : bars.parts) {
    EXPECT_LT(part.colour, kPageColours) << part.name;
    EXPECT_TRUE(colours.insert(part.colour).second) << part.name;
  }
}

TEST(PageParts, MemoryByStageAndClass) {
  MemoryUse use{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {80}, {}, {}};
  PageBars bars = pageMemory({use, use});
  ASSERT_EQ(bars.bars.size(), 2U);
  EXPECT_EQ(bars.bars[1].name, "stage 1");
  EXPECT_THAT(bars.bars[1].parts, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(bars.bars[1].total, 28);
  EXPECT_EQ(bars.limit, 80);
}

TEST(PageParts, TrafficIsSummedByAxisPhaseAndKind) {
  Mesh mesh{{{"dp", 2}, {"tp", 4}}};
  auto entry = [](StepKind kind, int axis, double bytes, LedgerPhase phase,
                  std::int64_t perStep, double time) {
    LedgerEntry one;
    one.kind = kind;
    one.axis = axis;
    one.bytes = {bytes};
    one.phase = phase;
    one.perStep = perStep;
    one.time = {time};
    return one;
  };
  std::vector<PageTraffic> traffic = pageTraffic(
      {entry(StepKind::allReduce, 1, 10, LedgerPhase::forward, 3, 1),
       entry(StepKind::allReduce, 0, 7, LedgerPhase::update, 1, 5),
       entry(StepKind::allReduce, 1, 20, LedgerPhase::forward, 2, 4),
       entry(StepKind::allReduce, 1, 1, LedgerPhase::backward, 1, 1)},
      mesh);
  ASSERT_EQ(traffic.size(), 3U);
  EXPECT_EQ(traffic[0].axis, "dp");
  EXPECT_EQ(traffic[1].axis, "tp");
  EXPECT_EQ(traffic[1].phase, "forward");
  EXPECT_EQ(traffic[1].count, 5);
  EXPECT_EQ(traffic[1].bytes, 70);   // 3 * 10 + 2 * 20
  EXPECT_EQ(traffic[1].seconds, 11); // 3 * 1 + 2 * 4
  EXPECT_EQ(traffic[2].phase, "backward");
}

// Each of two micro-batches crosses the two boundaries of three stages, in both
// directions.
TEST(PageParts, SendsAreCounted) {
  SliceTimes slice;
  slice.forward = slice.backward = {1};
  ChunkTimes chunk;
  chunk.slices = {slice};
  chunk.sendForward = {0.25};
  chunk.sendBackward = {0.5};
  StageTimes stage;
  stage.chunks = {chunk};
  StepProblem problem;
  problem.shape = {ScheduleKind::oneForwardOneBackward, 3, 1, 2};
  problem.stages.assign(3, stage);
  std::vector<PageTraffic> traffic;
  addSends(traffic, simulateStep(problem, scheduleOf(problem.shape)));
  ASSERT_EQ(traffic.size(), 2U);
  EXPECT_EQ(traffic[0].phase, "forward");
  EXPECT_EQ(traffic[0].count, 4);
  EXPECT_EQ(traffic[0].seconds, 1);
  EXPECT_EQ(traffic[1].seconds, 2);
  EXPECT_TRUE(std::isnan(traffic[1].bytes));
}

} // namespace
