//===- constraints_test.cpp - Constraints files ---------------------------===//

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;

std::string fileWith(const std::string &name, const std::string &text) {
  std::string path = testing::TempDir() + "mtplan_constraints_" + name;
  std::vector<std::string> errors;
  EXPECT_TRUE(writeTextFile(path, text, errors));
  return path;
}

struct Case {
  const char *name, *model;
  std::vector<std::string> arguments;
};
void PrintTo(const Case &one, std::ostream *out) { *out << one.name; }

// Returns a plan with a key per layer of each operator and parameter, because
// pins that split a segment change the names and runs of segments. Constraints
// do not fix which gradients are reduced once per step. Parameters of one shape
// and layout may exchange this choice at the same price, so only the number of
// such gradients is compared. The number of kinds of layers is not compared.
std::map<std::string, Json> byCopy(const Json &plan) {
  std::map<std::string, Json> all;
  for (const auto &[key, value] : plan.items()) {
    if (key == "kinds")
      continue;
    if (key != "ops" && key != "parameters") {
      all[key] = value;
      continue;
    }
    for (const Json &one : value)
      for (int i = 0; i < one["copies"].get<int>(); ++i) {
        Json copy = one;
        for (const char *run : {"segment", "first", "copies"})
          copy.erase(run);
        if (const auto once = copy.find("reduce_once_per_step");
            once != copy.end()) {
          Json &count = all["reduced once " + copy["local_shape"].dump() +
                            copy["layout"].dump()];
          count = (count.is_null() ? 0 : count.get<int>()) +
                  (once->get<bool>() ? 1 : 0);
          copy.erase(once);
        }
        all[key + ' ' + one["label"].get<std::string>() + ' ' +
            std::to_string(one["first"].get<int>() + i)] = copy;
      }
  }
  return all;
}

class Constraints : public testing::TestWithParam<Case> {};

TEST_P(Constraints, ExportedFromAPlanGiveThatPlan) {
  const Case &one = GetParam();
  std::vector<std::string> arguments = one.arguments;
  arguments.emplace_back("--json");
  Json before = Json::parse(runExample(one.model, arguments).out);
  arguments.back() = "--export=constraints";
  Ran exported = runExample(one.model, arguments);
  ASSERT_EQ(exported.code, kDone) << exported.err;
  std::string file = fileWith(one.name, exported.out);
  Ran ran = runExample(one.model, {"--constraints", file, "--json"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  Json after = Json::parse(ran.out);
  EXPECT_EQ(byCopy(before["plan"]), byCopy(after["plan"]));
  EXPECT_DOUBLE_EQ(before["prediction"]["step_time_s"],
                   after["prediction"]["step_time_s"]);
  EXPECT_EQ(after["search"]["candidates"], 1);
}

INSTANTIATE_TEST_SUITE_P(
    TenPlans, Constraints,
    testing::Values(
        Case{"free", "gpt2-8.3b", {"--gpus", "8", "--hardware", "dgx-2h"}},
        Case{"runs", "llama-3-8b", {"--memory-gib", "79.1"}},
        Case{"pins",
             "gpt2-1.2b",
             {"--tp", "4", "--pin", "h.3.mlp.fc1=column", "--pin",
              "wte.weight=[tp,-]"}},
        Case{"pipeline",
             "gpt2-8.3b",
             {"--gpus", "8", "--hardware", "dgx-2h", "--micro-batch", "1",
              "--pp", "4", "--zero", "any", "--schedule", "any"}},
        Case{"import",
             "gpt3-175b",
             {"--gpus", "128", "--hardware", "dgx-a100-80g", "--import",
              (MTPLAN_SOURCE_DIR "/examples/exchange/gpt3-175b.args")}},
        Case{"experts",
             "tiny-mixtral",
             {"--gpus", "8", "--zero", "3", "--global-batch", "16",
              "--software", "nemo-24"}},
        // tp 16 does not divide 15 heads, so other splits are used.
        Case{"heads",
             "bert-1.3b",
             {"--gpus", "16", "--hardware", "dgx-2h", "--dp", "1"}},
        Case{"replicas", "tiny-llama", {"--gpus", "4", "--global-batch", "16"}},
        Case{"host",
             "gpt2-2.5b",
             {"--gpus", "8", "--hardware", "dgx-2h", "--zero", "3", "--offload",
              "any", "--tiles", "2,4", "--global-batch", "16", "--tp", "1"}},
        Case{"context",
             "tiny-gptj",
             {"--gpus", "8", "--cp", "2", "--global-batch", "16"}},
        // Uneven stages are allowed, but the best plan has a single stage.
        Case{"uncut",
             "tiny-gpt2",
             {"--gpus", "2", "--pp", "any", "--stage-layers", "any", "--layers",
              "1", "--global-batch", "8"}},
        Case{"interleaved",
             "gpt2-2.5b",
             {"--gpus", "6", "--tp", "2", "--pp", "3", "--vp", "3",
              "--micro-batch", "1", "--global-batch", "12", "--recompute",
              "full"}}),
    [](const testing::TestParamInfo<Case> &one) { return one.param.name; });

// A file gives the same result as the flags.
TEST(ConstraintsFile, IsTheSameAsFlags) {
  std::string file = fileWith("flags.json", R"({
    "mtplan_constraints": 1, "gpus": 8, "tp": 2, "pp": [2, 4], "zero": "any",
    "splits": ["column", "row", "head", "vocab"], "overlap": ["gather"],
    "global_batch": 32, "pins": ["h.0.mlp.fc1=row"], "memory_gib": 70.5})");
  Ran said({examplePath("tiny-gpt2"), "--constraints", file});
  Ran typed({examplePath("tiny-gpt2"), "--gpus", "8", "--tp", "2", "--pp",
             "2,4", "--zero", "any", "--splits", "column,row,head,vocab",
             "--overlap", "gather", "--global-batch", "32", "--pin",
             "h.0.mlp.fc1=row", "--memory-gib", "70.5"});
  EXPECT_EQ(said.code, kDone) << said.err;
  EXPECT_EQ(said.out, typed.out);
}

struct Refusal {
  const char *name, *text;
  std::vector<std::string> arguments,
      errors; ///< FILE is replaced by the file's name
};
void PrintTo(const Refusal &one, std::ostream *out) { *out << one.name; }

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, ListsErrorsWithTheirPaths) {
  std::string file = fileWith("refused.json", GetParam().text);
  std::vector<std::string> arguments = GetParam().arguments;
  arguments.insert(arguments.end(), {"--constraints", file});
  Ran ran = runExample("tiny-gpt2", arguments);
  EXPECT_EQ(ran.code, kBadInput);
  std::string expected;
  for (std::string error : GetParam().errors) {
    for (std::size_t at; (at = error.find("FILE")) != error.npos;)
      error.replace(at, 4, file);
    expected += "error: " + error + '\n';
  }
  EXPECT_EQ(ran.err, expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, Refused,
    testing::Values(
        Refusal{
            "NoVersion", "{}", {}, {"FILE: /mtplan_constraints: is missing"}},
        Refusal{
            "Types",
            R"({"mtplan_constraints": 1, "tp": "two", "pp": [], "cp": "every",
                    "splits": [1], "memory_gib": "big", "pins": [3]})",
            {},
            {"FILE: /memory_gib: must be a number",
             "FILE: /tp: must be a whole number",
             ("FILE: /pp: must be a whole number, an array of them, or "
              "\"any\""),
             "FILE: /splits: must be a text or an array of texts",
             ("FILE: /pins/0: must be a text such as "
              "\"h.*.mlp.fc1=column\""),
             ("FILE: /cp: must be a whole number from 1 to 1048576, but is "
              "\"every\"")}},
        Refusal{"Values",
                R"({"mtplan_constraints": 1, "tp": 0, "zero": [1, 5],
                    "schedule": "2f2b"})",
                {},
                {"FILE: /tp: must be a whole number from 1 to 1048576, but is "
                 "0",
                 "FILE: /schedule: unknown schedule \"2f2b\"; nearest first, "
                 "known are 1f1b, gpipe, zero-bubble and interleaved",
                 "FILE: /zero: unknown stage \"5\"; nearest first, known are "
                 "0, 1, 2 and 3"}},
        Refusal{"UnknownKey",
                R"({"mtplan_constraints": 1, "tpp": 4})",
                {},
                {"FILE: /tpp: unknown key; the nearest valid key is \"tp\""}},
        Refusal{"SaidTwice",
                R"({"mtplan_constraints": 1, "tp": 4, "dp": 4})",
                {"--tp", "2", "--dp", "4"},
                {"--tp: is 2 here, but FILE: /tp says 4: give one of the two"}},
        Refusal{"KeyTwice",
                R"({"mtplan_constraints": 1, "tp": 4, "tp": 2})",
                {},
                {"FILE: /tp: the key is given twice"}}),
    [](const testing::TestParamInfo<Refusal> &one) { return one.param.name; });

} // namespace
} // namespace mtplan::tools
