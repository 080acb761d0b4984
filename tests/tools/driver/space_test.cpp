//===- space_test.cpp - Pipelines, context ranks and ZeRO -----------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;

class Space : public testing::TestWithParam<
                  std::tuple<const char *, const char *, const char *, int>> {};

// A plan of any configuration computes what one rank computes.
TEST_P(Space, PlansAreProved) {
  auto [model, pp, cp, zero] = GetParam();
  Ran ran = runExample(model, {"--gpus", "8", "--pp", pp, "--cp", cp, "--zero",
                               std::to_string(zero), "--global-batch", "16",
                               "--micro-batch", "2", "--top", "1", "--verify"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("Proof  holds: "));
}

INSTANTIATE_TEST_SUITE_P(
    Families, Space,
    testing::Combine(testing::Values("tiny-gpt2", "tiny-llama", "tiny-bert",
                                     "tiny-gptj", "tiny-t5", "tiny-vit"),
                     testing::Values("1", "2"), testing::Values("1", "2"),
                     testing::Values(0, 1, 2, 3)));

Json jsonOf(const char *model, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  Ran ran = runExample(model, arguments);
  EXPECT_EQ(ran.code, kDone) << ran.err;
  return Json::parse(ran.out);
}

// No single configuration is faster than the plan with everything open.
TEST(OpenSpace, IsTheBestOfItsParts) {
  const std::vector<std::string> open = {
      "--gpus",      "8",   "--global-batch", "16",  "--pp",   "any",
      "--cp",        "any", "--schedule",     "any", "--zero", "any",
      "--recompute", "any", "--top",          "1"};
  for (const char *model : {"tiny-gpt2", "tiny-t5"}) {
    SCOPED_TRACE(model);
    Json whole = jsonOf(model, open);
    double best = whole["prediction"]["step_time_s"];
    EXPECT_LE(whole["search"]["lower_bound_s"].get<double>(),
              best * (1 + 1e-9));
    for (const char *pp : {"1", "2"})
      for (const char *cp : {"1", "2", "4"})
        for (const char *zero : {"0", "1"}) {
          std::vector<std::string> part = open;
          part[5] = pp;
          part[7] = cp;
          part[11] = zero;
          Json report = jsonOf(model, part);
          EXPECT_GE(report["prediction"]["step_time_s"].get<double>(),
                    best * (1 - 1e-9))
              << pp << ' ' << cp << ' ' << zero;
        }
  }
}

// With p equal stages and m micro-batches, a pipeline idles (p - 1) / m of the
// ideal time (Narayanan et al. 2021, 2.2.1). Twice as many micro-batches halve
// this share.
TEST(OpenSpace, MoreMicroBatchesFillThePipeline) {
  auto waiting = [](const char *batch) {
    Json report =
        jsonOf("gpt2-8.3b",
               {"--gpus", "16", "--tp", "8", "--pp", "2", "--dp", "1",
                "--micro-batch", "1", "--global-batch", batch, "--recompute",
                "full", "--hardware", "dgx-a100-80g", "--top", "1"});
    return report["prediction"]["breakdown_s"]["pipeline"].get<double>() /
           report["prediction"]["step_time_s"].get<double>();
  };
  double few = waiting("8"), many = waiting("16");
  EXPECT_GT(few, many * 1.5);
  EXPECT_LT(few, 0.25);
}

// Korthikanti et al. 2022, section 4: for `a` heads, `s` positions and `b`
// samples, a layer keeps 5 a s^2 b bytes of scores, probabilities and mask. It
// keeps none if the core of attention is recomputed.
TEST(OpenSpace, SelectiveRecomputationKeepsNoScores) {
  auto planOf = [](const char *recompute, const char *software) {
    Json report =
        jsonOf("gpt2-1.2b", {"--gpus", "8", "--tp", "8", "--micro-batch", "4",
                             "--global-batch", "4", "--hardware",
                             "dgx-a100-80g", "--software", software,
                             "--recompute", recompute, "--top", "1"});
    return report;
  };
  auto stepOf = [](const Json &report) {
    return report["prediction"]["step_time_s"].get<double>();
  };
  auto keptBy = [](const Json &report) {
    return report["prediction"]["memory_bytes"]["activations"].get<double>();
  };
  Json none = planOf("none", "megatron-2022");
  Json selective = planOf("selective", "megatron-2022");
  Json full = planOf("full", "megatron-2022");
  EXPECT_EQ(selective["plan"]["recompute"], "selective");
  const double layers = 40, heads = 16, sequence = 1024;
  EXPECT_DOUBLE_EQ(keptBy(none) - keptBy(selective),
                   layers * 5 * heads / 8 * sequence * sequence * 4);
  EXPECT_LT(stepOf(none), stepOf(selective));
  EXPECT_LT(stepOf(selective), stepOf(full));
  // Selective recomputation is a choice only for software that keeps scores.
  EXPECT_EQ(planOf("any", "megatron-2022")["search"]["candidates"], 3);
  EXPECT_EQ(planOf("any", "mtplan")["search"]["candidates"], 2);
}

TEST(OpenSpace, RejectsImpossibleConfigurations) {
  auto errorOf = [](const std::vector<std::string> &arguments) {
    Ran ran = runExample("tiny-gpt2", arguments);
    EXPECT_EQ(ran.code, kBadInput);
    return ran.err;
  };
  EXPECT_EQ(errorOf({"--gpus", "3", "--dp", "2", "--pp", "2"}),
            "error: dp 2 does not divide the 3 GPUs; nearest that do: 1 and 3\n"
            "error: pp 2 does not divide the 3 GPUs; nearest that do: 1 and "
            "3\n");
  EXPECT_EQ(errorOf({"--gpus", "4", "--dp", "2", "--tp", "2", "--pp", "2"}),
            "error: tp 2 times dp 2 times pp 2 is 8, not the 4 GPUs; tp could "
            "be 1; dp could be 1; pp could be 1\n");
  EXPECT_EQ(
      errorOf({"--zero", "4"}),
      "error: --zero: unknown stage \"4\"; nearest first, known are 0, 1, 2 "
      "and 3\n");
}

} // namespace
} // namespace mtplan::tools
