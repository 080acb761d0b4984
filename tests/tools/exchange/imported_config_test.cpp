//===- imported_config_test.cpp - Imported and exported configurations ----===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::string fileWith(const std::string &name, const std::string &text) {
  std::string path = testing::TempDir() + "mtplan_" + name;
  std::vector<std::string> errors;
  EXPECT_TRUE(writeTextFile(path, text, errors));
  return path;
}

struct Case {
  const char *name, *model, *gpus;
  std::vector<std::string> choices;
};
void PrintTo(const Case &one, std::ostream *out) { *out << one.name; }

class RoundTrip
    : public testing::TestWithParam<std::tuple<const char *, Case>> {};

// A plan that is exported for another trainer and imported is the same plan at
// the same price.
TEST_P(RoundTrip, GivesTheSamePlan) {
  auto [notation, one] = GetParam();
  std::vector<std::string> arguments = {"--gpus",     one.gpus,
                                        "--hardware", "dgx-a100-80g",
                                        "--splits",   "column,row,head,vocab",
                                        "--top",      "1"};
  std::vector<std::string> fixed = arguments;
  fixed.insert(fixed.end(), one.choices.begin(), one.choices.end());
  auto with = [](std::vector<std::string> list,
                 std::initializer_list<std::string> more) {
    list.insert(list.end(), more);
    return list;
  };
  Ran exported = runExample(one.model, with(fixed, {"--export", notation}));
  ASSERT_EQ(exported.code, kDone) << exported.err;
  std::string file = fileWith(std::string(one.name) + notation, exported.out);
  Ran before = runExample(one.model, with(fixed, {"--json"}));
  Ran after =
      runExample(one.model, with(arguments, {"--import", file, "--json"}));
  ASSERT_EQ(after.code, kDone) << after.err << exported.out;
  Json a = Json::parse(before.out), b = Json::parse(after.out);
  EXPECT_EQ(a["plan"], b["plan"]);
  EXPECT_DOUBLE_EQ(a["prediction"]["step_time_s"],
                   b["prediction"]["step_time_s"]);
}

const Case kCases[] = {
    {"tp8", "gpt2-8.3b", "8", {"--tp", "8", "--dp", "1", "--micro-batch", "2"}},
    {"tp4dp2",
     "gpt2-1.2b",
     "8",
     {"--tp", "4", "--dp", "2", "--micro-batch", "4"}},
    {"pp4",
     "gpt2-2.5b",
     "8",
     {"--tp", "2", "--dp", "1", "--pp", "4", "--micro-batch", "1"}},
    {"interleaved",
     "gpt2-8.3b",
     "8",
     {"--tp", "2", "--dp", "1", "--pp", "4", "--micro-batch", "1", "--vp",
      "3"}},
    {"zero1",
     "gpt2-1.2b",
     "8",
     {"--tp", "2", "--dp", "4", "--micro-batch", "2", "--zero", "1"}},
    {"offload",
     "gpt2-2.5b",
     "8",
     {"--tp", "2", "--dp", "4", "--micro-batch", "2", "--zero", "1",
      "--offload", "optimizer"}},
    {"offloadAlone",
     "gpt2-2.5b",
     "1",
     {"--tp", "1", "--dp", "1", "--micro-batch", "2", "--offload",
      "optimizer"}},
    {"recompute",
     "gpt3-175b",
     "64",
     {"--tp", "8", "--dp", "1", "--pp", "8", "--micro-batch", "1",
      "--recompute", "full"}},
};

INSTANTIATE_TEST_SUITE_P(Megatron, RoundTrip,
                         testing::Combine(testing::Values("megatron"),
                                          testing::ValuesIn(kCases)));

INSTANTIATE_TEST_SUITE_P(
    DeepSpeed, RoundTrip,
    testing::Combine(
        testing::Values("deepspeed"),
        testing::Values(Case{"ds0",
                             "gpt2-1.2b",
                             "8",
                             {"--tp", "1", "--dp", "8", "--micro-batch", "2"}},
                        Case{"ds1",
                             "gpt2-1.2b",
                             "8",
                             {"--tp", "1", "--dp", "8", "--micro-batch", "2",
                              "--zero", "1"}},
                        Case{"ds2",
                             "gpt2-2.5b",
                             "8",
                             {"--tp", "1", "--dp", "8", "--micro-batch", "1",
                              "--zero", "2"}},
                        Case{"dsOffload",
                             "gpt2-2.5b",
                             "8",
                             {"--tp", "1", "--dp", "8", "--micro-batch", "1",
                              "--zero", "2", "--offload", "optimizer"}},
                        Case{"dsOffloadAlone",
                             "gpt2-2.5b",
                             "1",
                             {"--tp", "1", "--dp", "1", "--micro-batch", "1",
                              "--offload", "optimizer"}},
                        Case{"ds3",
                             "gpt2-2.5b",
                             "8",
                             {"--tp", "1", "--dp", "8", "--micro-batch", "1",
                              "--zero", "3"}})));

// No trainer's configuration has tiles, so the export has a note.
TEST(Export, NotesTiledWeights) {
  for (auto [notation, where] :
       {std::pair("deepspeed", "TiledLinear"), std::pair("megatron", "none"),
        std::pair("torchtitan", "none"), std::pair("accelerate", "none")}) {
    Ran ran = runExample("gpt2-1.2b",
                         {"--gpus", "8", "--tp", "1", "--zero", "3", "--tiles",
                          "4", "--global-batch", "8", "--export", notation});
    EXPECT_EQ(ran.code, kDone) << ran.err;
    EXPECT_THAT(ran.err + ran.out,
                HasSubstr("weights are used in tiles, h.*.mlp.fc1.weight in 4, "
                          "h.*.mlp.fc2.weight in 4; "));
    EXPECT_THAT(ran.err + ran.out, HasSubstr(where));
  }
}

// Trainers enable fp8 in other ways, so a plan with fp8 products is written as
// bf16, not as the single precision of a configuration without a precision.
TEST(Export, WritesFp8AsBf16WithANote) {
  for (auto [notation, bf16] :
       {std::pair("megatron", "--bf16"), std::pair("deepspeed", "\"bf16\""),
        std::pair("torchtitan", "\"bfloat16\""),
        std::pair("accelerate", "'bf16'")}) {
    Ran ran = runExample("llama-3-8b",
                         {"--gpus", "8", "--tp", "8", "--micro-batch", "1",
                          "--precision", "fp8", "--export", notation});
    EXPECT_EQ(ran.code, kDone) << ran.err;
    EXPECT_THAT(ran.err + ran.out, HasSubstr("products are in fp8"))
        << notation;
    EXPECT_THAT(ran.out, HasSubstr(bf16)) << notation;
  }
}

TEST(Import, RejectsContradictionsToTheModel) {
  std::string file =
      fileWith("flags", "--num-layers 24 --hidden-size 3072 "
                        "--num-attention-heads 32 --seq-length 1024 "
                        "--tensor-model-parallel-size 8 --micro-batch-size 4 "
                        "--global-batch-size 512 --fp16");
  Ran ran = runExample("gpt2-8.3b", {"--gpus", "8", "--import", file});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err,
              HasSubstr(file + ": number of layers is 24, the model's 72"));
  ran = runExample("gpt2-8.3b", {"--gpus", "8", "--import", file, "--tp", "4"});
  EXPECT_THAT(ran.err,
              HasSubstr("--tp: is what --import says: give one of the two"));
}

// The configuration has decided the layers of every stage, so that an open
// search does not ask for uneven cuts of a pipeline with one stage.
TEST(Import, OfOneStageIsPlannedByAnOpenSearch) {
  const std::string file =
      fileWith("one_stage", "--num-layers 72 --hidden-size 3072 "
                            "--num-attention-heads 32 --seq-length 1024 "
                            "--tensor-model-parallel-size 8 "
                            "--micro-batch-size 4 --global-batch-size 512 "
                            "--fp16");
  const Ran ran = runExample("gpt2-8.3b", {"--gpus", "8", "--open", "all",
                                           "--import", file, "--json"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  const Json plan = Json::parse(ran.out)["plan"];
  EXPECT_EQ(plan["tp"], 8);
  EXPECT_EQ(plan["pp"], 1);
}

} // namespace
} // namespace mtplan::tools
