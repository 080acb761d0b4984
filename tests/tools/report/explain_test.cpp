//===- explain_test.cpp - Explanations and comparisons --------------------===//

#include <regex>

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

// There is a line for the plan, each alternative and each mesh. The reason of a
// mesh holds for its named candidate alone.
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
              testing::StartsWith("chosen: dp 1 x tp 8, micro-batch 8 x 64: "));
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
                           std::regex("^dp (\\d+) x tp (\\d+), micro-batch "
                                      "(\\d+) x .*: needs (\\S+) of")))
      continue;
    ++meshes;
    Ran alone = runExample("gpt2-8.3b", {"--gpus", "8", "--hardware", "dgx-2h",
                                         "--dp", parts[1], "--tp", parts[2],
                                         "--micro-batch", parts[3]});
    EXPECT_EQ(alone.code, kNothingFits);
    EXPECT_THAT(alone.out, HasSubstr(", " + parts[4].str() + " of 31.7 GiB\n"));
  }
  EXPECT_EQ(meshes, 3);
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
       {"mesh   ", "dp 1 x tp 8", "dp 4 x tp 1 x pp 2", "choices",
        "1f1b, ZeRO 1", "step  ", "  tensor communication", "  optimizer",
        "  over dp  ", "  over pp  ", "  over tp  ",
        "Operators  that are split otherwise"})
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

// A plan names the terms that no published run has, and its time without them.
// Tiled plans are priced without tiles; host time is subtracted.
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

} // namespace
} // namespace mtplan::tools
