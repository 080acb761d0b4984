//===- explain_test.cpp - Explanations and comparisons --------------------===//

#include <fstream>
#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"
#include "tools/report/comparison.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

planner::PlannedCandidate candidate(planner::StepTime time) {
  planner::PlannedCandidate plan;
  plan.time = time;
  return plan;
}

// Differences are sorted by size; those below a tenth of the largest are left
// out.
TEST(Differences, NameTheLargestTerms) {
  planner::StepTime a, b;
  a.compute = {3.0};
  b.compute = {5.0};
  a.tensor = {10.0};
  b.tensor = {1.0};
  a.update = {0.5};
  b.update = {0.4};
  EXPECT_EQ(differencesText(candidate(a), candidate(b)),
            "tensor communication +9.00 s, compute -2.00 s");
  EXPECT_EQ(differencesText(candidate(a), candidate(a)), "takes the same");
}

TEST(Reason, NamesExpertCommunication) {
  planner::StepTime a, b;
  a.compute = b.compute = {3.0};
  a.exchange = {5.0};
  b.exchange = {1.0};
  EXPECT_EQ(reasonAgainst(candidate(a), candidate(b)),
            "expert communication 5.00 s against 1.00 s");
}

TEST(Shortage, NamesTheLargestClasses) {
  planner::MemoryUse use;
  use.parameters = {10 * kGiB};
  use.optimizer = {40 * kGiB};
  use.activations = {8 * kGiB};
  use.workspace = {1 * kGiB};
  use.limit = {31.5 * kGiB};
  EXPECT_EQ(shortageText(use), "59.0 of 31.5 GiB: optimizer 40.0, parameters "
                               "10.0, activations 8.00");
}

// "why" has a line for the plan, for each alternative and for each rejected
// mesh. If the line of a mesh names a candidate that does not fit, a search of
// only this candidate gives the same reason.
TEST(Explain, NamesTrueReasons) {
  const std::vector<std::string> asked = {"--gpus", "8",     "--hardware",
                                          "dgx-2h", "--top", "3"};
  std::vector<std::string> arguments = asked;
  arguments.insert(arguments.end(), {"--explain", "--json"});
  Json report = Json::parse(runExample("gpt2-8.3b", arguments).out);
  const Json &why = report["why"];
  EXPECT_EQ(why.size(), 1 + report["alternatives"].size() +
                            report["search"]["rejections"].size());
  EXPECT_THAT(why[0].get<std::string>(),
              testing::StartsWith("chosen: tp 8, micro-batch 8 x 64: "));
  // Without a memory limit, the chosen configuration takes the stated time.
  std::smatch parts;
  std::string chosen = why[0];
  ASSERT_TRUE(std::regex_search(
      chosen, parts, std::regex("with (.*) GiB it could take (.*)")));
  Ran endless = runExample("gpt2-8.3b",
                           {"--gpus", "8", "--hardware", "dgx-2h", "--tp", "8",
                            "--micro-batch", "8", "--memory-gib", "1000"});
  EXPECT_THAT(endless.out, HasSubstr("Step  " + parts[2].str() + ":"));
  EXPECT_THAT(endless.out, HasSubstr("Memory  " + parts[1].str() + " of "));
  // If a mesh does not fit, its line has the memory that the smallest plan of
  // the named candidate needs.
  int meshes = 0;
  for (const Json &one : why) {
    std::string line = one;
    if (!std::regex_search(line, parts,
                           std::regex("^(?:dp (\\d+))?(?: x )?(?:tp (\\d+))?, "
                                      "micro-batch (\\d+) x .*: needs (\\S+) "
                                      "of")))
      continue;
    ++meshes;
    auto degree = [&](int group) {
      return parts[group].matched ? parts[group].str() : "1";
    };
    Ran alone = runExample("gpt2-8.3b", {"--gpus", "8", "--hardware", "dgx-2h",
                                         "--dp", degree(1), "--tp", degree(2),
                                         "--micro-batch", parts[3]});
    EXPECT_EQ(alone.code, kNothingFits);
    EXPECT_THAT(alone.out, HasSubstr(", " + parts[4].str() + " of 31.7 GiB\n"));
  }
  EXPECT_EQ(meshes, 3);
}

// The answer has the plan that a narrower search finds, and the terms in which
// it differs from the best plan.
TEST(Why, NamesTheBestPlanOfANarrowerSearch) {
  const std::vector<std::string> asked = {"--gpus", "8", "--hardware",
                                          "dgx-2h"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), asked.begin(), asked.end());
    return runExample("gpt2-8.3b", more);
  };
  auto stepOf = [](const Ran &ran) {
    return Json::parse(ran.out)["prediction"]["step_time_s"].get<double>();
  };
  const Ran asks =
      with({"--why", "tp=8 micro-batch=4", "--why", "pp=2", "--why", "dp=8",
            "--why", "tp=3", "--why", "collectives=all_reduce"});
  EXPECT_EQ(asks.code, kDone) << asks.err;
  const double best = stepOf(with({"--json"}));
  const double narrower =
      stepOf(with({"--tp", "8", "--micro-batch", "4", "--json"}));
  EXPECT_THAT(asks.out,
              HasSubstr("why not tp=8 micro-batch=4: tp 8, micro-batch 4 x 128 "
                        "takes " +
                        timeText({narrower}) + ", " +
                        fmt::format("{:+.1f} %", 100 * (narrower / best - 1)) +
                        ": compute +"));
  // The search left pp closed.
  EXPECT_THAT(asks.out, testing::ContainsRegex(
                            "why not pp=2: tp 4 x pp 2, .* takes .*, -1.*; the "
                            "search did not include it\n"));
  EXPECT_THAT(asks.out,
              testing::ContainsRegex(
                  "why not dp=8: dp 8, micro-batch 1 x 64 needs 1.* of "
                  "31.7 GiB: optimizer "));
  EXPECT_THAT(asks.out,
              HasSubstr("why not tp=3: tp 3 does not divide the 8 GPUs"));
  EXPECT_THAT(asks.out, HasSubstr("why not collectives=all_reduce: tp 8, "));
}

// The plan with 1F1B is faster than the chosen plan, within the tolerance, but
// less simple. The answer says why.
TEST(Why, SaysWhatMakesAFasterPlanLessSimple) {
  const Ran ran({examplePath("llama-3-70b"), "--gpus", "64", "--stage-layers",
                 "even", "--why", "schedule=1f1b"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex(
                           "why not schedule=1f1b: .*, 1f1b, ZeRO 1 takes .*, "
                           "-0\\.[0-9] .*; it (has|leaves|combines) "));
}

TEST(Why, RejectsWordsThatAreNoFlags) {
  for (const auto &[words, message] :
       {std::pair("zeo=1", "--why: unknown choice \"zeo\"; nearest first, "
                           "known are zero"),
        std::pair("tp", "--why: needs NAME=VALUE, such as tp=8, but has "
                        "\"tp\""),
        std::pair(" ", "--why: needs NAME=VALUE, such as tp=8, but is empty"),
        std::pair("tp=two", "--why: tp: must be a whole number"),
        std::pair("json=1", "--why: unknown choice \"json\""),
        std::pair("layers=8", "--why: unknown choice \"layers\"")}) {
    const Ran ran = runExample("tiny-gpt2", {"--why", words});
    EXPECT_EQ(ran.code, kBadInput) << words;
    EXPECT_THAT(ran.err, HasSubstr(message)) << words;
  }
}

// Each row has the best plan of a search with the row's values.
TEST(Sweep, HasTheBestPlanOfEachCombination) {
  const std::vector<std::string> asked = {"--gpus", "8",      "--hardware",
                                          "dgx-2h", "--open", "pp,zero"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), asked.begin(), asked.end());
    return runExample("gpt2-8.3b", more);
  };
  const Ran swept = with({"--sweep", "tp,pp,zero"});
  EXPECT_EQ(swept.code, kDone) << swept.err;
  std::istringstream lines(swept.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "tp,pp,zero,step_time_s,memory_bytes,plan,reason");
  int plans = 0, failures = 0;
  while (std::getline(lines, line)) {
    SCOPED_TRACE(line);
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(
        line, parts,
        std::regex("(\\d+),(\\d+),(\\d+),([^,]*),([^,]*),(.*),(.*)")));
    const Ran alone = with(
        {"--tp", parts[1], "--pp", parts[2], "--zero", parts[3], "--json"});
    if (parts[4].length() == 0) {
      ++failures;
      EXPECT_EQ(alone.code, kNothingFits);
      EXPECT_GT(parts[7].length(), 0);
      continue;
    }
    ++plans;
    const Json prediction = Json::parse(alone.out)["prediction"];
    EXPECT_EQ(prediction["step_time_s"], std::stod(parts[4]));
    EXPECT_NEAR(prediction["memory_bytes"]["total"].get<double>(),
                std::stod(parts[5]), 1);
  }
  EXPECT_GT(plans, 8);
  EXPECT_GT(failures, 3);
}

TEST(Sweep, DrawsItsPlansAndRejectsOtherOutput) {
  const std::string page = testing::TempDir() + "mtplan_sweep.html";
  EXPECT_EQ(runExample("tiny-gpt2", {"--gpus", "4", "--sweep", "tp,micro-batch",
                                     "--report", page})
                .code,
            kDone);
  std::ifstream file(page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("class=\"front\""));
  EXPECT_THAT(text, HasSubstr("micro-batch 2 x 256"));
  EXPECT_THAT(runExample("tiny-gpt2", {"--sweep", "tp", "--json"}).err,
              HasSubstr("--sweep: prints a CSV: give it without --json"));
  EXPECT_THAT(runExample("tiny-gpt2", {"--sweep", "tq"}).err,
              HasSubstr("--sweep: unknown flag to sweep \"tq\"; nearest "
                        "first, known are tp"));
}

std::string saved(const std::string &name, const std::string &model,
                  std::vector<std::string> arguments) {
  std::string path = testing::TempDir() + "mtplan_compared_" + name + ".json";
  arguments.insert(arguments.end(), {"--save", path});
  Ran ran = runExample(model, arguments);
  EXPECT_EQ(ran.code, kDone) << ran.err;
  return path;
}

TEST(Compare, ReportsDifferencesAndReasons) {
  std::string a = saved("a", "gpt2-1.2b",
                        {"--gpus", "8", "--tp", "8", "--micro-batch", "8",
                         "--splits", "column,row,head,vocab"});
  std::string b = saved("b", "gpt2-1.2b",
                        {"--gpus", "8", "--tp", "1", "--dp", "4", "--pp", "2",
                         "--micro-batch", "8", "--zero", "1"});
  Ran ran({"--compare", a, b});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  for (const char *line :
       {"mesh   ", "tp 8", "dp 4 x pp 2", "choices", "1f1b, ZeRO 1", "step  ",
        "  tensor communication", "  optimizer", "  over dp  ", "  over pp  ",
        "  over tp  ", "Operators  that are split otherwise"})
    EXPECT_THAT(ran.out, HasSubstr(line));
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("h\\.\\*\\.mlp\\.fc1 +column +batch\n"));
  EXPECT_THAT(ran.out, HasSubstr(b + " is "));
  EXPECT_THAT(ran.out, HasSubstr(" % faster: the other has tensor "
                                 "communication +"));
  // In the opposite order, the same plan is faster.
  EXPECT_THAT(Ran({"--compare", b, a}).out, HasSubstr(b + " is "));
  Ran same({"--compare", a, a});
  EXPECT_THAT(same.out, HasSubstr("Operators  are all split alike\n"
                                  "Both take the same time.\n"));
  EXPECT_THAT(same.out, testing::Not(HasSubstr("mesh")));
}

TEST(Compare, RejectsOtherFiles) {
  std::string a = saved("c", "tiny-gpt2", {"--gpus", "2"});
  Ran ran({"--compare", a, "no-such-plan.json"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(ran.err, "error: no-such-plan.json: cannot be read: No such file "
                     "or directory\n");
}

// A report names the plan's terms that no published run has, and the time
// without them. Tiled plans are priced without tiles; host time is subtracted.
TEST(Unvalidated, TilesAndHostTimeAreSubtracted) {
  auto report = [](const char *tiles, const char *offload) {
    return Json::parse(
        runExample("gpt2-1.2b",
                   {"--gpus", "8", "--tp", "1", "--zero", "3", "--micro-batch",
                    "1", "--global-batch", "8", "--tiles", tiles, "--offload",
                    offload, "--top", "1", "--json"})
            .out)["prediction"];
  };
  Json both = report("4", "optimizer"), tiled = report("4", "none"),
       usual = report("1", "none");
  ASSERT_EQ(tiled["unvalidated"]["terms"].size(), 1U);
  EXPECT_EQ(tiled["unvalidated"]["terms"][0]["term"], "weights in tiles");
  EXPECT_DOUBLE_EQ(tiled["unvalidated"]["step_time_s"], usual["step_time_s"]);
  ASSERT_EQ(both["unvalidated"]["terms"].size(), 2U);
  EXPECT_EQ(both["unvalidated"]["terms"][0]["term"], "offload to the host");
  double host = both["breakdown_s"]["host"];
  EXPECT_GT(host, 0.0);
  // The device still squares gradients for their norm. This reads 4 bytes per
  // weight of the 34 that an update reads and writes.
  const double norm = both["breakdown_s"]["update"],
               update = usual["breakdown_s"]["update"];
  EXPECT_NEAR(norm, update * 4 / 34, 1e-9);
  EXPECT_NEAR(both["unvalidated"]["step_time_s"],
              double(usual["step_time_s"]) - update + norm, 1e-9);
}

TEST(Unvalidated, TermsAreListedWithTheTimeWithout) {
  auto report = [](const char *schedule) {
    return Json::parse(
        runExample("gpt2-2.5b",
                   {"--gpus", "8", "--tp", "2", "--dp", "1", "--pp", "4",
                    "--micro-batch", "1", "--global-batch", "16", "--schedule",
                    schedule, "--top", "1", "--json"})
            .out)["prediction"];
  };
  Json zeroBubble = report("zero-bubble"), usual = report("1f1b");
  EXPECT_TRUE(usual["unvalidated"]["terms"].empty());
  EXPECT_EQ(usual["unvalidated"]["step_time_s"], usual["step_time_s"]);
  ASSERT_EQ(zeroBubble["unvalidated"]["terms"].size(), 1U);
  EXPECT_EQ(zeroBubble["unvalidated"]["terms"][0]["term"],
            "the zero-bubble schedule");
  EXPECT_LT(zeroBubble["step_time_s"], usual["step_time_s"]);
  EXPECT_DOUBLE_EQ(zeroBubble["unvalidated"]["step_time_s"],
                   usual["step_time_s"]);
}

// Feature G10: a pipeline stops at ZeRO 1, and the report says why.
TEST(Explain, SaysWhyPipelinesStopAtZeroOne) {
  const char *why =
      "ZeRO 2 and 3 with a pipeline are planned only with --zero 2 or 3";
  auto explained = [](const char *pp, const char *zero) {
    const Ran ran =
        runExample("gpt2-1.2b", {"--gpus", "16", "--hardware", "dgx-a100-80g",
                                 "--pp", pp, "--tp", "2", "--global-batch",
                                 "64", "--zero", zero, "--explain"});
    EXPECT_EQ(ran.code, kDone) << ran.err;
    return ran.out;
  };
  EXPECT_THAT(explained("2", "any"), HasSubstr(why));
  EXPECT_THAT(explained("1", "any"), testing::Not(HasSubstr(why)));
  EXPECT_THAT(explained("2", "1"), testing::Not(HasSubstr(why)));
  EXPECT_THAT(explained("2", "2"), HasSubstr(why));
}

} // namespace
} // namespace mtplan::tools
