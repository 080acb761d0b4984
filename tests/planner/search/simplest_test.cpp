//===- simplest_test.cpp - The simplest plan within a tolerance -----------===//

#include <gtest/gtest.h>

#include "planner/search/search.h"
#include "tests/planner/random_model.h"

namespace mtplan::planner {
namespace {

// Counts the different layers of a plan, from the choices of every repeat.
int kindsOf(const ModelGraph &model, const PlannedCandidate &plan) {
  std::vector<const SegmentPlan *> runs;
  for (const auto &part : plan.parts)
    for (const SegmentPlan &run : part) {
      if (model.segments[static_cast<std::size_t>(run.segment)].repeat == 1)
        continue;
      bool isKnown = false;
      for (const SegmentPlan *known : runs)
        isKnown = isKnown || (known->segment == run.segment &&
                              known->strategies == run.strategies &&
                              known->saved == run.saved &&
                              known->parameters == run.parameters);
      if (!isKnown)
        runs.push_back(&run);
    }
  return static_cast<int>(runs.size());
}

SearchOptions optionsFor(std::int64_t globalBatch) {
  SearchOptions options;
  options.devices = 4;
  options.globalBatch = globalBatch;
  options.pp.only.clear();
  options.zeroStage.only.clear();
  options.recompute.only.clear();
  options.tensorSplits = {Split::row, Split::column, Split::sequence};
  options.top = 100;
  return options;
}

// Compares the plan chosen within the tolerance with all plans that a search
// without a tolerance lists.
TEST(Simplest, IsWithinTheToleranceAndNoListedPlanIsSimpler) {
  int slower = 0, fewerKinds = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomModel random(seed);
    ModelGraph model = random.model(1 + static_cast<int>(seed % 3), 2, 2);
    Machine machine = roundMachine(seed % 2 == 0 ? 0.0 : 1e-6);
    SearchOptions options = optionsFor(8);
    SearchResult free = search(model, machine, options);
    ASSERT_FALSE(free.plans.empty());
    const Bytes used = free.plans[0].memory.total();
    for (double share : {2.0, 0.9, 0.7})
      for (double tolerance : {0.01, 0.2}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " at " << share
                                        << ", tolerance " << tolerance);
        machine.device.memory = used * share;
        options.tolerance = 0.0;
        const SearchResult raw = search(model, machine, options);
        options.tolerance = tolerance;
        const SearchResult result = search(model, machine, options);
        ASSERT_EQ(raw.plans.empty(), result.plans.empty());
        if (raw.plans.empty())
          continue;
        const PlannedCandidate &chosen = result.plans.front();
        const double fastest = raw.plans.front().time.step.value;
        EXPECT_TRUE(chosen.fits);
        EXPECT_EQ(result.fastestStep().value, fastest);
        EXPECT_EQ(result.lowerBound, raw.lowerBound);
        EXPECT_EQ(result.optimal, raw.optimal);
        EXPECT_LE(chosen.time.step.value, fastest * (1 + tolerance));
        EXPECT_EQ(result.faster.has_value(), chosen.time.step.value > fastest);

        // The plan is consistent, has the time that it claims, and fits.
        const ModelGraph graph =
            withBatch(model, chosen.config.microBatch * chosen.config.dp);
        const Setting setting = settingOf(options, machine, chosen.config);
        EXPECT_TRUE(check(graph, chosen.plans(), setting).empty());
        const PlannedCandidate again =
            priceGiven(graph, options, machine, chosen.config, chosen.parts);
        EXPECT_EQ(again.time.step, chosen.time.step);
        EXPECT_TRUE(again.fits);

        const Simplicity simple = simplicityOf(model, chosen);
        EXPECT_EQ(simple.kinds, kindsOf(model, chosen));
        for (const PlannedCandidate &other : raw.plans)
          if (other.time.step.value <= fastest * (1 + tolerance)) {
            const Simplicity its = simplicityOf(model, other);
            EXPECT_FALSE(its < simple);
          }
        slower += result.faster.has_value();
        fewerKinds += result.faster && result.faster->chosen.kinds <
                                           result.faster->simplicity.kinds;
      }
  }
  EXPECT_GT(slower, 20);
  EXPECT_GT(fewerKinds, 5);
}

} // namespace
} // namespace mtplan::planner
