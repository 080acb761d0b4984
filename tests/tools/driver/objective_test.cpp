//===- objective_test.cpp - Objectives other than the step time -----------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"
#include "tools/driver/objective.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(GpuCounts, AreDivisorsOfANodeThenWholeNodes) {
  planner::Machine machine;
  machine.devicesPerNode = 8;
  EXPECT_THAT(gpuCounts(machine, 24), ElementsAre(1, 2, 4, 8, 16, 24));
  EXPECT_THAT(gpuCounts(machine, 6), ElementsAre(1, 2, 4));
  EXPECT_THAT(gpuCounts(machine, 1), ElementsAre(1));
  machine.devicesPerNode = 6;
  EXPECT_THAT(gpuCounts(machine, 13), ElementsAre(1, 2, 3, 6, 12));
}

// No smaller number of GPUs has a plan.
TEST(FewestGpus, AreTheFewest) {
  const std::vector<std::string> asked = {
      "--hardware", "dgx-a100-40g", "--max-step-time", "15",
      "--zero",     "0,1",          "--splits",        "column,row,head,vocab"};
  std::vector<std::string> arguments = asked;
  arguments.insert(arguments.end(), {"--objective", "gpus", "--json"});
  Ran ran = runExample("gpt2-8.3b", arguments);
  ASSERT_EQ(ran.code, kDone) << ran.err;
  Json report = Json::parse(ran.out);
  int fewest = report["hardware"]["gpus"];
  EXPECT_GT(fewest, 8);
  EXPECT_LE(report["prediction"]["step_time_s"], 15.0);
  EXPECT_EQ(report["objective"]["least"], "gpus");
  EXPECT_FALSE(report["objective"]["tried"].empty());
  planner::Machine node;
  node.devicesPerNode = 8;
  for (int gpus : gpuCounts(node, fewest)) {
    std::vector<std::string> alone = asked;
    alone.insert(alone.end(),
                 {"--gpus", std::to_string(gpus), "--top", "1", "--json"});
    Ran one = runExample("gpt2-8.3b", alone);
    bool has = !Json::parse(one.out)["plan"].is_null();
    EXPECT_EQ(has, gpus == fewest) << gpus;
  }
}

TEST(FewestGpus, SayWhyOthersFail) {
  Ran ran =
      runExample("gpt2-8.3b", {"--objective", "gpus", "--hardware", "dgx-2h",
                               "--max-step-time", "60", "--splits",
                               "column,row,head,vocab", "--zero", "any"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(" are the fewest for a step within 60.0 s, of "
                                 "divisors of a node and whole nodes\n"));
  EXPECT_THAT(ran.out, HasSubstr(" of 31.7 GiB\n"));
  Ran none = runExample("gpt2-8.3b", {"--objective", "gpus", "--gpus", "4",
                                      "--hardware", "dgx-2h"});
  EXPECT_EQ(none.code, kNothingFits);
  EXPECT_THAT(none.out, HasSubstr("GPUs  no number tried is enough\n"));
}

// Numbers of GPUs that a fixed tp does not divide are skipped.
TEST(FewestGpus, ObeyFixedDegrees) {
  Ran ran = runExample("gpt2-1.2b", {"--objective", "gpus", "--tp", "4",
                                     "--global-batch", "16"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("GPUs  4 are the fewest, of"));
  EXPECT_THAT(ran.out, HasSubstr("  2: tp 4 does not divide the 2 GPUs"));
}

// A plan exists at the least memory, and none below.
TEST(LeastMemory, IsTheLeast) {
  std::vector<std::string> asked = {"--gpus", "4", "--global-batch", "16"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), asked.begin(), asked.end());
    return runExample("gpt2-1.2b", more);
  };
  Json least = Json::parse(with({"--objective", "memory", "--json"}).out);
  double bytes = least["prediction"]["memory_bytes"]["total"];
  EXPECT_GT(least["prediction"]["memory_bytes"]["limit"], bytes * 2);
  constexpr double kGib = 1024.0 * 1024 * 1024;
  EXPECT_EQ(with({"--memory-gib", std::to_string(bytes / kGib + 1e-3)}).code,
            kDone);
  EXPECT_EQ(with({"--memory-gib", std::to_string(bytes / kGib - 0.02)}).code,
            kNothingFits);
}

TEST(MaxStepTime, IsALimit) {
  std::vector<std::string> asked = {"--gpus", "8", "--global-batch", "64",
                                    "--json"};
  Json fast = Json::parse(runExample("gpt2-1.2b", asked).out);
  double step = fast["prediction"]["step_time_s"];
  auto within = [&](double share) {
    std::vector<std::string> limited = asked;
    limited.insert(limited.end(),
                   {"--max-step-time", std::to_string(step * share)});
    return runExample("gpt2-1.2b", limited);
  };
  Json same = Json::parse(within(1.01).out);
  EXPECT_EQ(same["plan"], fast["plan"]);
  for (const Json &other : same["alternatives"])
    EXPECT_LE(other["step_time_s"].get<double>(), step * 1.01);
  EXPECT_EQ(within(0.9).code, kNothingFits);
}

// If lower bounds rule out the step time, the report names no nearest plan.
TEST(MaxStepTime, WithoutAPlanIsReportedAsTooSlow) {
  const Ran ran = runExample("gpt2-1.2b", {"--max-step-time", "0.001"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_THAT(ran.out, testing::HasSubstr("\nNo plan is fast enough for a step "
                                          "in 1.00 ms, of 34 candidates.\n"
                                          "  dp "));
  EXPECT_THAT(ran.out,
              testing::ContainsRegex(": no plan is faster than [0-9.]+ m?s\n"));
  EXPECT_THAT(ran.out, testing::Not(testing::HasSubstr("Nearest: ")));
}

// A search that is stopped at any point returns a legal plan and a bound; the
// optimum is between the bound and the plan.
TEST(Budget, BoundsTheOptimum) {
  PlanRequest request;
  request.model = examplePath("gpt2-1.2b");
  request.hardware = "dgx-a100-40g";
  request.gpus = 16;
  request.globalBatch = 64;
  request.splits = allSplits();
  request.pp.only = {1, 2, 4};
  request.zeroStage.only.clear();
  PlanOutcome whole = planned(request);
  double best = whole.best()->time.step.value;
  double bound = whole.result.lowerBound.value;
  int asked = 0;
  whole.problem->options.stop = [&] { return ++asked < 0; };
  searchProblem(whole);
  EXPECT_EQ(whole.best()->time.step.value, best);
  ASSERT_GT(asked, 4);
  for (int last : {0, 1, 2, asked / 2, asked - 1}) {
    PlanOutcome cut = planned(request);
    int count = 0;
    cut.problem->options.stop = [&] { return count++ >= last; };
    searchProblem(cut);
    ASSERT_NE(cut.best(), nullptr) << last;
    if (last == 0) { // without time, one candidate that probably fits is solved
      EXPECT_LE(cut.result.solved + cut.result.refused, 4);
    }
    EXPECT_GE(cut.best()->time.step.value, bound * (1 - 1e-9)) << last;
    EXPECT_LE(cut.result.lowerBound.value, best * (1 + 1e-9)) << last;
    EXPECT_EQ(cut.result.candidates, whole.result.candidates) << last;
  }
}

TEST(Budget, IsReported) {
  Ran ran = runExample("gpt2-1.2b", {"--gpus", "16", "--pp", "any", "--zero",
                                     "any", "--budget-seconds", "1e-9"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex(
                           "Best found, at most .* % above the optimum, over "
                           "[0-9]+ candidates, [0-9]+ of them excluded by "
                           "bounds, [0-9]+ not reached\n$"));
}

} // namespace
} // namespace mtplan::tools
