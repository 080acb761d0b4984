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
    {"zero3",
     "gpt2-2.5b",
     "8",
     {"--tp", "1", "--dp", "8", "--micro-batch", "1", "--zero", "3"}},
    {"overlap0",
     "gpt2-1.2b",
     "8",
     {"--tp", "2", "--dp", "4", "--micro-batch", "2", "--zero", "0",
      "--overlap", "on"}},
    {"pp2vp2",
     "gpt2-8.3b",
     "8",
     {"--tp", "4", "--dp", "1", "--pp", "2", "--micro-batch", "1", "--vp", "2",
      "--overlap", "sends"}},
    {"experts",
     "tiny-mixtral",
     "8",
     {"--tp", "1", "--dp", "8", "--ep", "8", "--micro-batch", "2", "--zero",
      "1", "--global-batch", "64"}},
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
                        Case{"dsPipeline",
                             "gpt2-2.5b",
                             "8",
                             {"--tp", "1", "--dp", "4", "--pp", "2",
                              "--micro-batch", "1", "--zero", "1"}},
                        Case{"dsTensor",
                             "gpt2-1.2b",
                             "8",
                             {"--tp", "2", "--dp", "4", "--micro-batch", "2"}},
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

// Only DeepSpeed has tiles, in the model's code.
TEST(Export, RefusesTiledWeights) {
  for (const char *notation :
       {"deepspeed", "megatron", "torchtitan", "accelerate"}) {
    Ran ran = runExample("gpt2-1.2b",
                         {"--gpus", "8", "--tp", "1", "--zero", "3", "--tiles",
                          "4", "--global-batch", "8", "--export", notation});
    const bool isNoted = std::string_view(notation) == "deepspeed";
    EXPECT_EQ(ran.code, isNoted ? kDone : kBadInput) << ran.err;
    EXPECT_THAT(ran.err,
                HasSubstr("weights are used in tiles, h.*.mlp.fc1.weight in 4, "
                          "h.*.mlp.fc2.weight in 4; "));
    EXPECT_THAT(ran.err, HasSubstr(isNoted ? "TiledLinear"
                                           : "has none; nearest: --tiles 1"));
  }
}

// Trainers enable fp8 in other ways, so a plan with fp8 products is written as
// bf16, not without a precision, which would mean single precision.
TEST(Export, WritesFp8AsBf16WithANote) {
  for (auto [notation, bf16] :
       {std::pair("megatron", "--bf16"), std::pair("deepspeed", "\"bf16\""),
        std::pair("torchtitan", "\"bfloat16\""),
        std::pair("accelerate", "'bf16'")}) {
    Ran ran =
        runExample("llama-3-8b", {"--gpus", "8", "--tp", "1", "--zero", "3",
                                  "--micro-batch", "1", "--global-batch", "8",
                                  "--precision", "fp8", "--export", notation});
    EXPECT_EQ(ran.code, kDone) << ran.err;
    EXPECT_THAT(ran.err + ran.out, HasSubstr("products are in fp8"))
        << notation;
    EXPECT_THAT(ran.out, HasSubstr(bf16)) << notation;
  }
}

std::vector<std::string> onFour(const char *notation,
                                std::vector<std::string> more = {}) {
  more.insert(more.begin(),
              {"--gpus", "4", "--hardware", "cpu", "--global-batch", "16"});
  more.insert(more.end(), {"--export", notation});
  return more;
}

// The export has the options that Megatron-LM would otherwise take from its
// defaults.
TEST(Export, DescribesTheModelToMegatron) {
  const auto optionsOf = [](const char *model) {
    Ran ran = runExample(model, onFour("megatron", {"--tp", "1", "--zero", "3",
                                                    "--layers", "2"}));
    EXPECT_EQ(ran.code, kDone) << ran.err;
    return ran.out;
  };
  const std::string mixtral = optionsOf("tiny-mixtral");
  for (const char *option :
       {"--num-experts 8 ", "--moe-router-topk 2 ", "--swiglu ",
        "--moe-token-dispatcher-type alltoall ",
        "--moe-expert-capacity-factor 1.25 ",
        "--moe-pad-expert-input-to-capacity ", "--moe-aux-loss-coeff 0.02 ",
        "--normalization RMSNorm ", "--position-embedding-type rope ",
        "--disable-bias-linear ", "--attention-dropout 0 ",
        "--hidden-dropout 0", "--ckpt-format fsdp_dtensor "})
    EXPECT_THAT(mixtral, HasSubstr(option));
  EXPECT_THAT(optionsOf("tiny-qwen2"), HasSubstr("--add-qkv-bias "));
  EXPECT_THAT(optionsOf("tiny-gpt_neox-sequential"),
              HasSubstr("--rotary-percent 0.25 "));
  // GPT-2's dropout is Megatron-LM's default, so it is not written.
  EXPECT_THAT(optionsOf("tiny-gpt2"), testing::Not(HasSubstr("dropout")));
  Ran llama = runExample(
      "llama-3-8b", {"--gpus", "8", "--tp", "1", "--zero", "3", "--micro-batch",
                     "1", "--global-batch", "8", "--export", "megatron"});
  EXPECT_THAT(llama.out, HasSubstr("--rotary-base 500000 "));
}

// At tp 4, Megatron-LM would pad to 50,688 rows, a multiple of 512, but the
// model has 51,200 rows.
TEST(Export, PadsTheVocabularyAsTheModelDoes) {
  Ran ran =
      runExample("gpt2-8.3b", {"--gpus", "4", "--tp", "4", "--splits",
                               "column,row,head,vocab", "--micro-batch", "1",
                               "--global-batch", "8", "--export", "megatron"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("--vocab-size 50257 \\\n"
                                 "--make-vocab-size-divisible-by 256 "));
}

TEST(Export, RefusesModelsThatAreNoGpt) {
  for (auto [model, reason] :
       {std::pair("tiny-t5", "tiny-t5 is a t5: it has no operator like "
                             "encoder.*.ln_1"),
        std::pair("tiny-vit", "tiny-vit is a vit: it has no operator like "
                              "patch"),
        std::pair("tiny-bert", "it has no operator like wtt"),
        std::pair("tiny-gptj", "its h.*.attn.add comes before h.*.mlp.drop"),
        std::pair("tiny-gemma2", "it has no operator like embed.scale"),
        std::pair("tiny-qwen2_moe", "it has no operator like "
                                    "h.*.shared.gate")}) {
    Ran ran = runExample(model, onFour("megatron", {"--tp", "1"}));
    EXPECT_EQ(ran.code, kBadInput) << model;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("error: --export megatron: Megatron-LM's "
                                   "options describe a GPT, but "))
        << model;
    EXPECT_THAT(ran.err, HasSubstr(reason));
  }
}

// The trainers would run other splits of tensor ranks as Megatron-LM's. The
// flags that the refusal names give a plan that is exported.
TEST(Export, RefusesOtherTensorSplits) {
  Ran ran = runExample("tiny-llama", onFour("megatron", {"--tp", "4"}));
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err,
              HasSubstr("error: --export megatron: the 4 tensor ranks work "
                        "otherwise than Megatron-LM's: wte is column, not "
                        "vocab, "));
  for (const char *notation : {"megatron", "deepspeed"}) {
    Ran nearest =
        runExample("tiny-llama", onFour(notation, {"--tp", "4", "--splits",
                                                   "column,row,head,vocab",
                                                   "--pin", "wte=vocab"}));
    EXPECT_EQ(nearest.code, kDone) << nearest.err;
  }
  // These pins split the sequence as Megatron-LM does.
  std::vector<std::string> pins = {"--tp", "4"};
  for (const char *pin :
       {"wte=vocab", "h.*.attn.q=column", "h.*.attn.k=column",
        "h.*.attn.v=column", "h.*.attn.core=head", "h.*.attn.proj=row",
        "h.*.mlp.gate=column", "h.*.mlp.up=column", "h.*.mlp.down=row",
        "*ln_*=sequence", "*.add=sequence", "lm_head=vocab"})
    pins.insert(pins.end(), {"--pin", pin});
  for (const char *notation : {"megatron", "torchtitan"}) {
    Ran sequence = runExample("tiny-llama", onFour(notation, pins));
    EXPECT_EQ(sequence.code, kDone) << sequence.err;
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

// The configuration fixes the layers of every stage, so an open search does not
// ask for uneven cuts of a pipeline with one stage.
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
