//===- saved_plan_test.cpp - Loading a saved plan -------------------------===//

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

std::string pathOf(const std::string &name) {
  return testing::TempDir() + "mtplan_saved_" + name + ".json";
}

Json fileAt(const std::string &path) {
  std::ifstream file(path);
  return Json::parse(file);
}

struct Case {
  const char *name, *model;
  std::vector<std::string> arguments;
};
void PrintTo(const Case &one, std::ostream *out) { *out << one.name; }

class SavedPlans : public testing::TestWithParam<Case> {};

// Each report of a loaded plan has the same bytes as when the plan was saved.
TEST_P(SavedPlans, PrintTheSameAgain) {
  const Case &one = GetParam();
  std::string path = pathOf(one.name);
  std::vector<std::string> saving = one.arguments;
  saving.insert(saving.end(), {"--save", path});
  Ran before = runExample(one.model, saving);
  ASSERT_EQ(before.code, kDone) << before.err;
  Ran after({"--load", path});
  EXPECT_EQ(after.code, kDone) << after.err;
  EXPECT_EQ(after.out, before.out);
  saving.emplace_back("--json");
  EXPECT_EQ(Ran({"--load", path, "--json"}).out,
            runExample(one.model, saving).out);
  // Saving a loaded plan gives the same file.
  std::string again = pathOf(std::string(one.name) + "_again");
  ASSERT_EQ(Ran({"--load", path, "--save", again}).code, kDone);
  EXPECT_TRUE(nlohmann::json(fileAt(again)) == nlohmann::json(fileAt(path)));
}

INSTANTIATE_TEST_SUITE_P(
    All, SavedPlans,
    testing::Values(
        Case{"free", "gpt2-8.3b", {"--gpus", "8", "--hardware", "dgx-2h"}},
        // Layers of this plan have different layouts, and its memory must be
        // equal to the byte.
        Case{"runs", "llama-3-8b", {}},
        Case{"pins",
             "gpt2-1.2b",
             {"--tp", "4", "--pin", "h.3.mlp.fc1=column", "--pin",
              "h.5..9.mlp.fc1=row", "--pin", "wte.weight=[tp,-]"}},
        // Some gradients are reduced once a step over one of two tensor axes.
        Case{"two_tensor_axes",
             "tiny-llama",
             {"--gpus", "4", "--tp-axes", "2,2", "--global-batch", "8",
              "--micro-batch", "4", "--splits", "batch,head,vocab,column"}},
        Case{"pipeline",
             "gpt2-8.3b",
             {"--gpus", "8", "--hardware", "dgx-2h", "--micro-batch", "1",
              "--pp", "2,4", "--zero", "any", "--recompute", "any",
              "--schedule", "any", "--top", "3"}},
        Case{"uneven",
             "gpt2-1.2b",
             {"--gpus", "4", "--tp", "2", "--dp", "1", "--pp", "2",
              "--stage-layers", "11,29", "--micro-batch", "1", "--overlap",
              "gather,sends"}},
        Case{"offload",
             "gpt2-8.3b",
             {"--gpus", "2", "--hardware", "dgx-a100-80g", "--zero", "any",
              "--offload", "any", "--overlap", "host", "--global-batch", "16",
              "--top", "3"}},
        Case{"tiles",
             "gpt2-1.2b",
             {"--gpus", "8", "--zero", "3", "--tiles", "4,8", "--global-batch",
              "16", "--tp", "1", "--top", "2"}},
        Case{"context",
             "tiny-gptj",
             {"--gpus", "8", "--cp", "2", "--global-batch", "16", "--seq", "16",
              "--precision", "fp32"}},
        Case{"experts",
             "tiny-mixtral",
             {"--gpus", "8", "--zero", "3", "--global-batch", "16",
              "--software", "nemo-24", "--memory-gib", "70"}}),
    [](const testing::TestParamInfo<Case> &one) { return one.param.name; });

// A loaded plan is proved and exported without a search.
TEST(SavedPlan, IsProvedAndExported) {
  std::string path = pathOf("proved");
  std::vector<std::string> asked = {"--gpus",         "4",
                                    "--global-batch", "16",
                                    "--tp",           "2",
                                    "--micro-batch",  "4",
                                    "--splits",       "column,row,head,vocab",
                                    "--pin",          "wte=vocab"};
  std::vector<std::string> saving = asked;
  saving.insert(saving.end(), {"--save", path});
  ASSERT_EQ(runExample("tiny-llama", saving).code, kDone);
  EXPECT_THAT(Ran({"--load", path, "--verify"}).out,
              HasSubstr("Proof  holds: "));
  std::vector<std::string> exporting = asked;
  exporting.insert(exporting.end(), {"--export", "megatron"});
  const std::string written = runExample("tiny-llama", exporting).out;
  EXPECT_THAT(written, testing::StartsWith("--num-layers"));
  EXPECT_EQ(Ran({"--load", path, "--export", "megatron"}).out, written);
  std::vector<std::string> emitting = asked;
  emitting.insert(emitting.end(), {"--emit", "mlir", "--stage", "partitioned"});
  EXPECT_EQ(
      Ran({"--load", path, "--emit", "mlir", "--stage", "partitioned"}).out,
      runExample("tiny-llama", emitting).out);
}

// On a slower network the same plan takes longer. On a machine without enough
// memory it does not fit.
TEST(SavedPlan, IsPricedOnAnotherMachine) {
  std::string path = pathOf("elsewhere");
  Ran before = runExample(
      "gpt2-8.3b", {"--gpus", "16", "--tp", "8", "--json", "--save", path});
  ASSERT_EQ(before.code, kDone) << before.err;
  Ran after({"--load", path, "--scale-network", "0.5", "--json"});
  ASSERT_EQ(after.code, kDone) << after.err;
  Json fast = Json::parse(before.out), slow = Json::parse(after.out);
  EXPECT_EQ(fast["plan"], slow["plan"]);
  EXPECT_LT(fast["prediction"]["step_time_s"],
            slow["prediction"]["step_time_s"]);
  EXPECT_TRUE(slow["alternatives"].empty());
  EXPECT_THAT(Ran({"--load", path, "--scale-network", "0.5"}).out,
              HasSubstr("The plan of " + path + ", priced as it stands\n"));
  Ran small({"--load", path, "--hardware", "dgx-a100-40g"});
  EXPECT_EQ(small.code, kNothingFits);
  EXPECT_THAT(small.out, HasSubstr("Nothing fits, of 1 candidate."));
}

/// Saves a small plan, whose file a test changes.
class Spoiled : public testing::Test {
protected:
  void SetUp() override {
    Ran ran =
        runExample("tiny-gpt2", {"--gpus", "4", "--tp", "2", "--global-batch",
                                 "8", "--top", "1", "--save", path});
    ASSERT_EQ(ran.code, kDone) << ran.err;
    file = fileAt(path);
  }

  // Returns all errors of the changed file, without its name.
  std::string refusal(std::vector<std::string> more = {}) {
    std::vector<std::string> errors;
    EXPECT_TRUE(writeTextFile(path, file.dump(), errors));
    more.insert(more.end(), {"--load", path});
    Ran ran(more);
    EXPECT_EQ(ran.code, kBadInput);
    EXPECT_EQ(ran.out, "");
    std::string said = ran.err;
    for (std::size_t at; (at = said.find(path + ": ")) != said.npos;)
      said.erase(at, path.size() + 2);
    return said;
  }

  std::string path = pathOf("spoiled");
  Json file;
};

TEST_F(Spoiled, IsRejectedWithThePath) {
  file["mtplan_plan"] = 2;
  EXPECT_EQ(refusal(),
            "error: /mtplan_plan: is 2; this mtplan reads version 1\n");
}

TEST_F(Spoiled, IsNoPlanWithoutAVersion) {
  file.erase("mtplan_plan");
  EXPECT_EQ(refusal(), "error: /mtplan_plan: is missing\n");
}

TEST_F(Spoiled, ByAnotherModel) {
  std::string said = refusal({examplePath("tiny-gptj")});
  EXPECT_THAT(said, StartsWith("error: /model/parameters: is "));
  EXPECT_THAT(said, HasSubstr(" in tiny-gpt2, and "));
  EXPECT_THAT(said, HasSubstr(" in tiny-gptj\n"));
}

TEST_F(Spoiled, ByAModelOfTheSameSize) {
  file["model"]["fingerprint"] = "0123456789abcdef";
  EXPECT_THAT(refusal(),
              StartsWith("error: /model/fingerprint: is 0123456789abcdef, of "
                         "tiny-gpt2 "));
}

TEST_F(Spoiled, ByAnUnknownStrategy) {
  file["plans"][0]["runs"][1]["operators"]["h.*.mlp.fc1"] = "dp=b tp=z";
  EXPECT_THAT(refusal(),
              StartsWith("error: /plans/0/runs/1/operators/h.*.mlp.fc1: is "
                         "\"dp=b tp=z\"; may be "));
}

TEST_F(Spoiled, ByALayoutThatDoesNotDivide) {
  file["plans"][0]["runs"][1]["kept"]["h.*.mlp.fc1"] = "[dp, -, pp]";
  EXPECT_EQ(refusal(),
            "error: /plans/0/runs/1/kept/h.*.mlp.fc1: is \"[dp, -, pp]\", "
            "where \"pp\" is no axis of the mesh, or one that is there "
            "already\n");
  file["plans"][0]["runs"][1]["kept"]["h.*.mlp.fc1"] = "[dp, -]";
  EXPECT_EQ(refusal(), "error: /plans/0/runs/1/kept/h.*.mlp.fc1: is \"[dp, "
                       "-]\", which has 2 dimensions, not 3\n");
}

// Each layout is legal, but a value is read in a layout that nothing produces.
TEST_F(Spoiled, ByLayoutsThatNothingProduces) {
  Json &run = file["plans"][0]["runs"][1];
  ASSERT_FALSE(run["changes"].empty());
  Json lost = run["changes"][0];
  run["changes"].erase(run["changes"].begin());
  EXPECT_THAT(
      refusal(),
      testing::AllOf(
          StartsWith("error: /plans/0: h: " + lost["value"].get<std::string>()),
          HasSubstr(lost["to"].get<std::string>() + ", but exists as ")));
}

TEST_F(Spoiled, ByAdjacentSegmentsThatDisagree) {
  Json &run = file["plans"][0]["runs"][1];
  Json layout = run["carried_in"][0];
  run["carried_in"][0] =
      layout == "[dp, -, -]" ? "[dp+tp, -, -]" : "[dp, -, -]";
  EXPECT_THAT(refusal(), HasSubstr("error: /plans/0: embed: "));
}

TEST_F(Spoiled, ByAMissingLayer) {
  Json &part = file["plans"][0]["parts"][0];
  part[1]["copies"] = part[1]["copies"].get<int>() - 1;
  EXPECT_EQ(refusal(), "error: /plans/0/parts/0: does not hold each layer "
                       "once, as stage_layers deals them out\n");
}

TEST_F(Spoiled, ByAnUnknownMesh) {
  file["plans"][0]["parallelism"]["tp"] = 4;
  EXPECT_EQ(refusal(), "error: /plans/0/parallelism: is not among what was "
                       "asked for on 4 GPUs, or not legal there\n");
}

TEST_F(Spoiled, ByAMachineWithoutASource) {
  file["machine"]["device"]["memory_GiB"] = 3;
  EXPECT_THAT(refusal(), StartsWith("error: /machine/device/"));
}

TEST_F(Spoiled, ByABadRequest) {
  file["asked"]["tp"] = "two";
  file["asked"]["speed"] = 3;
  EXPECT_EQ(refusal(), "error: /asked/tp: must be a whole number\n"
                       "error: /asked/speed: unknown key; the nearest valid "
                       "key is \"seq\"\n");
}

TEST_F(Spoiled, ByText) {
  std::vector<std::string> errors;
  ASSERT_TRUE(writeTextFile(path, "{\"mtplan_plan\": 1,", errors));
  Ran ran({"--load", path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, StartsWith("error: " + path + ":1:"));
}

TEST_F(Spoiled, ByFlagsThatTheFileDecides) {
  EXPECT_EQ(refusal({"--tp", "2", "--pin", "wte=vocab"}),
            "error: --tp: is what --load says: give one of the two\n"
            "error: --pin: is what --load says: give one of the two\n");
}

} // namespace
} // namespace mtplan::tools
