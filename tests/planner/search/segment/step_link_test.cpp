//===- step_link_test.cpp - Costs of a segment in two links ---------------===//

#include <gtest/gtest.h>

#include "planner/search/segment/step_link.h"

namespace mtplan::planner {
namespace {

// The first repeat and the others, each in a link of its own, cost together
// what one link of all repeats costs.
TEST(ScaledLink, DividesTheCostsOfAllRepeats) {
  SegmentProblem unit;
  unit.link.problem.domains = {2};
  for (CostScale scale :
       {CostScale::perMicroBatch, CostScale::carriedOut, CostScale::perChunk,
        CostScale::perStep, CostScale::sharedByRepeats})
    for (bool recomputed : {false, true}) {
      unit.link.problem.tables.push_back({{0}, {1.0, 2.0}, {4.0, 8.0}});
      unit.scales.push_back({scale, recomputed});
    }
  Setting setting;
  setting.microBatches = 4;
  setting.inFlight = 3.0;
  setting.recomputeShare = 0.5;
  for (int parts : {1, 2, 8})
    for (int repeats : {2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << parts << " parts, " << repeats);
      setting.parts = parts;
      const Link whole = scaledLink(unit, {}, setting, repeats, repeats),
                 first = scaledLink(unit, {}, setting, 1, repeats),
                 others = scaledLink(unit, {}, setting, repeats - 1, repeats);
      EXPECT_EQ(whole.repeat, repeats);
      EXPECT_EQ(first.repeat + others.repeat, repeats);
      for (std::size_t t = 0; t < unit.scales.size(); ++t)
        for (std::size_t value : {0U, 1U}) {
          const auto compare = [&](auto costsOf) {
            const double both =
                costsOf(first)[value] + (repeats - 1) * costsOf(others)[value];
            EXPECT_NEAR(both, repeats * costsOf(whole)[value], 1e-9)
                << "table " << t;
          };
          compare(
              [&](const Link &link) { return link.problem.tables[t].time; });
          compare(
              [&](const Link &link) { return link.problem.tables[t].memory; });
        }
    }
}

} // namespace
} // namespace mtplan::planner
