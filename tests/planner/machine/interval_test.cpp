//===- interval_test.cpp - How far predictions may be off -----------------===//

#include <cmath>

#include <gtest/gtest.h>

#include "planner/machine/interval.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"

namespace mtplan::planner {
namespace {

Software softwareWithRuns() {
  Software software = defaultSoftware();
  software.accuracy = {{"hopper", 30, 16, 0.9, 1.1},
                       {"hopper", 20, 128, 0.8, 1.2},
                       {"H100-SXM5-80GB", 5, 64, 0.95, 1.05}};
  return software;
}

// A device's own runs count before those of its architecture, and entries whose
// largest run has fewer devices do not apply.
TEST(StepInterval, IsThatOfTheNearestRuns) {
  const Software software = softwareWithRuns();
  const Device h100 = loadMachine("dgx-h100").device;
  ASSERT_EQ(h100.name, "H100-SXM5-80GB");
  EXPECT_EQ(stepInterval(software, h100, 8).runs, &software.accuracy[2]);
  EXPECT_EQ(stepInterval(software, h100, 64).interval.high, 1.05);
  EXPECT_EQ(stepInterval(software, h100, 65).runs, &software.accuracy[1]);
  EXPECT_EQ(stepInterval(software, h100, 129).runs, nullptr);
  const Device h200 = loadMachine("hgx-h200").device;
  EXPECT_EQ(stepInterval(software, h200, 16).runs, &software.accuracy[0]);
  EXPECT_EQ(stepInterval(software, h200, 17).interval.low, 0.8);
  const StepInterval none =
      stepInterval(software, loadMachine("dgx-a100-80g").device, 8);
  EXPECT_EQ(none.runs, nullptr);
  EXPECT_EQ(none.interval.low, kUnvalidated.low);
  EXPECT_EQ(none.interval.high, kUnvalidated.high);
}

// The ranks of 19 values are 0.1 * 20 = 2 and 18. Their logarithms count 19
// times, and those of no run once.
TEST(IntervalOf, HasTheRanksOfFurtherValues) {
  std::vector<Ratio> ratios;
  for (int i = 19; i >= 1; --i)
    ratios.push_back({std::exp(0.01 * i)});
  const Interval interval = intervalOf(ratios);
  EXPECT_NEAR(std::log(interval.low),
              (19 * 0.02 + std::log(kUnvalidated.low)) / 20, 1e-12);
  EXPECT_NEAR(std::log(interval.high),
              (19 * 0.18 + std::log(kUnvalidated.high)) / 20, 1e-12);
  // One run weighs as much as the prior.
  EXPECT_NEAR(intervalOf({{1.0}}).low, std::sqrt(kUnvalidated.low), 1e-12);
  EXPECT_EQ(intervalOf({}).high, kUnvalidated.high);
}

// Rank 0.1 * 15 = 1.5 lies half way between the two least of 14 values.
TEST(IntervalOf, InterpolatesBetweenRanks) {
  std::vector<Ratio> ratios(14);
  ratios[3].value = 0.81;
  EXPECT_NEAR(std::log(intervalOf(ratios).low),
              (14 * 0.5 * std::log(0.81) + std::log(kUnvalidated.low)) / 15,
              1e-12);
}

// The ten values share ten ranks by weight, so the heavy value has 9 / 1.8 = 5
// of them and lies at 0.5 + 5 / 2 = 3. Rank 1.1 is below, so it is that value.
TEST(IntervalOf, WeightsStretchRanks) {
  std::vector<Ratio> ratios(9, Ratio{2.0, 1.0});
  ratios.push_back({0.5, 9.0});
  const double low = std::log(intervalOf(ratios).low);
  EXPECT_NEAR(low, (10 * std::log(0.5) + std::log(kUnvalidated.low)) / 11,
              1e-12);
  ratios.back().weight = 0.01; // a run that hardly counts
  EXPECT_GT(intervalOf(ratios).low, 1.5);
}

} // namespace
} // namespace mtplan::planner
