//===- repeats_test.cpp - Repeated values of a flag -----------------------===//

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;

struct Repeat {
  const char *flag, *key;
  Json repeated;
  std::string once;
};
void PrintTo(const Repeat &one, std::ostream *out) { *out << one.flag; }

class Repeats : public testing::TestWithParam<Repeat> {};

// A repeated value, in a flag or in a file, gives the same report as the value
// given once, without duplicate plans.
TEST_P(Repeats, OfChoicesAreIgnored) {
  const Repeat &one = GetParam();
  std::vector<std::string> asked = {"--gpus",         "8",  "--dp",  "4",
                                    "--global-batch", "16", "--top", "100",
                                    "--json"};
  auto add = [&](const char *flag, const char *value) {
    if (one.flag != std::string(flag))
      asked.insert(asked.end(), {flag, value});
  };
  add("--zero", "3");
  add("--zero-ranks", "4");
  add("--tiles", "2");
  add("--recompute", "full");
  std::string text;
  for (const Json &value : one.repeated)
    text += (text.empty() ? "" : ",") +
            (value.is_string() ? value.get<std::string>() : value.dump());
  auto with = [&](const char *flag, const std::string &value) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), {flag, value});
    arguments.insert(arguments.begin(), examplePath("tiny-mixtral"));
    return Ran(arguments);
  };
  Ran once = with(one.flag, one.once), typed = with(one.flag, text);
  ASSERT_EQ(once.code, kDone) << once.err;
  ASSERT_EQ(typed.code, kDone) << typed.err;
  EXPECT_EQ(typed.out, once.out);
  std::string path = testing::TempDir() + "mtplan_repeats" + one.key + ".json";
  std::vector<std::string> errors;
  ASSERT_TRUE(writeTextFile(
      path, Json{{"mtplan_constraints", 1}, {one.key, one.repeated}}.dump(),
      errors));
  Ran read = with("--constraints", path);
  ASSERT_EQ(read.code, kDone) << read.err;
  EXPECT_EQ(read.out, once.out);
  std::set<std::string> plans;
  Json alternatives = Json::parse(typed.out)["alternatives"];
  for (const Json &plan : alternatives)
    EXPECT_TRUE(plans.insert(plan.dump()).second) << plan;
}

INSTANTIATE_TEST_SUITE_P(
    Lists, Repeats,
    testing::Values(
        Repeat{"--pp", "pp", {2, 1, 2}, "2,1"},
        Repeat{"--cp", "cp", {1, 2, 1}, "1,2"},
        Repeat{"--ep", "ep", {2, 2, 1}, "2,1"},
        Repeat{"--vp", "vp", {1, 1}, "1"},
        Repeat{
            "--schedule", "schedule", {"1f1b", "gpipe", "1f1b"}, "1f1b,gpipe"},
        Repeat{"--zero", "zero", {3, 0, 3}, "3,0"},
        Repeat{"--zero-ranks", "zero_ranks", {4, 4, 2, 4}, "4,2"},
        Repeat{
            "--recompute", "recompute", {"full", "none", "full"}, "full,none"},
        Repeat{"--recompute-layers", "recompute_layers", {1, 2, 1}, "1,2"},
        Repeat{"--offload", "offload", {"none", "none"}, "none"},
        Repeat{"--tiles", "tiles", {2, 1, 2}, "2,1"},
        Repeat{"--overlap",
               "overlap",
               {"gather", "reduce", "gather"},
               "gather,reduce"},
        Repeat{
            "--splits", "splits", {"column", "row", "column"}, "column,row"}),
    [](const testing::TestParamInfo<Repeat> &one) {
      return std::string(one.param.key);
    });

// The layers of stages are one list, not alternatives, so every number counts.
TEST(Repeats, OfStageLayersCount) {
  Json plan = Json::parse(
      runExample("tiny-gpt2", {"--gpus", "4", "--layers", "8", "--pp", "4",
                               "--stage-layers", "1,3,3,1", "--json"})
          .out)["plan"];
  EXPECT_EQ(plan["layers"], Json({1, 3, 3, 1}));
}

} // namespace
} // namespace mtplan::tools
