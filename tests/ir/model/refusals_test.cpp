//===- refusals_test.cpp - Rejected models --------------------------------===//
//
// Each case edits a valid file and expects the complete error text.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include "tests/ir/model/loading.h"

namespace mtplan::ir {
namespace {

struct Refusal {
  const char *test, *example, *from, *to;
  std::vector<std::string> errors;
};

void PrintTo(const Refusal &refusal, std::ostream *out) {
  *out << refusal.test;
}

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, HaveTheExpectedErrors) {
  const Refusal &refusal = GetParam();
  Loading loading(
      replaced(Loading::example(refusal.example), refusal.from, refusal.to));
  EXPECT_FALSE(loading.model);
  EXPECT_EQ(loading.errors, refusal.errors);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Refusals,
    testing::Values(
        Refusal{"Heads",
                "tiny-gpt2",
                "\"n_head\": 8",
                "\"n_head\": 7",
                {"m.json: /n_head: 7 does not divide n_embd 64; nearest that "
                 "do: 4 and 8"}},
        // This is a misprinted width of BERT 3.9B, which has 40 heads.
        Refusal{"HeadsOfBert",
                "bert-3.9b",
                "\"hidden_size\": 2560",
                "\"hidden_size\": 2506",
                {"m.json: /num_attention_heads: 40 does not divide hidden_size "
                 "2506; nearest that do: 14 and 179"}},
        Refusal{"KeyValueHeads",
                "tiny-llama",
                "\"num_key_value_heads\": 8",
                "\"num_key_value_heads\": 3",
                {"m.json: /num_key_value_heads: 3 does not divide "
                 "num_attention_heads 8; nearest that do: 2 and 4"}},
        Refusal{"MoreKeyValueHeadsThanHeads",
                "tiny-llama",
                "\"num_key_value_heads\": 8",
                "\"num_key_value_heads\": 16",
                {"m.json: /num_key_value_heads: 16 does not divide "
                 "num_attention_heads 8; nearest that do: 8"}},
        Refusal{
            "Architecture",
            "tiny-llama",
            "\"model_type\": \"llama\"",
            "\"model_type\": \"lama2\"",
            {"m.json: /model_type: unknown architecture \"lama2\"; nearest "
             "first, known are llama, gemma2, gpt2, qwen2, gptj, bert, vit, "
             "t5, mistral, "
             "mixtral, gpt_neox and qwen2_moe"}},
        Refusal{"Activation",
                "tiny-gpt2",
                "gelu_new",
                "gelu_knew",
                {"m.json: /activation_function: unknown activation "
                 "\"gelu_knew\"; nearest first, known are gelu_new, gelu_fast, "
                 "gelu, relu, silu, tanh, swish, sigmoid and "
                 "gelu_pytorch_tanh"}},
        Refusal{"MoreExpertsThanThereAre",
                "tiny-mixtral",
                "\"num_experts_per_tok\": 2",
                "\"num_experts_per_tok\": 9",
                {"m.json: /num_experts_per_tok: 9 is more than "
                 "num_local_experts 8"}},
        Refusal{"NoRoomAtExperts",
                "tiny-mixtral",
                "{",
                "{\"capacity_factor\": 0, ",
                {"m.json: /capacity_factor: must be above 0"}},
        Refusal{"NoisyRouting",
                "tiny-mixtral",
                "{",
                "{\"router_jitter_noise\": 0.1, ",
                {"m.json: /router_jitter_noise: only 0 is supported: routing "
                 "has no noise"}},
        Refusal{"ExpertsInEverySecondLayer",
                "tiny-qwen2_moe",
                "\"decoder_sparse_step\": 1",
                "\"decoder_sparse_step\": 2",
                {"m.json: /decoder_sparse_step: only 1 is supported: all "
                 "layers must have experts"}},
        Refusal{"LayersWithoutExperts",
                "tiny-qwen2_moe",
                "\"mlp_only_layers\": []",
                "\"mlp_only_layers\": [0]",
                {"m.json: /mlp_only_layers: names 1 layers without experts; "
                 "only an empty list is supported: all layers must have "
                 "experts"}},
        Refusal{
            "LayersWithoutExpertsAsANumber",
            "tiny-qwen2_moe",
            "\"mlp_only_layers\": []",
            "\"mlp_only_layers\": 0",
            {"m.json: /mlp_only_layers: must be an array, but is the number "
             "0"}},
        Refusal{"Gate",
                "tiny-llama",
                "\"silu\"",
                "\"gelu\"",
                {"m.json: /hidden_act: unknown gate activation \"gelu\"; "
                 "nearest first, known are silu and swish"}},
        Refusal{"Placement",
                "tiny-bert",
                "\"post\"",
                "\"past\"",
                {"m.json: /layer_norm_placement: unknown placement \"past\"; "
                 "nearest first, known are post and pre"}},
        Refusal{"MissingKey",
                "tiny-gpt2",
                "\"n_embd\"",
                "\"n_emdb\"",
                {"m.json: /n_embd: is missing"}},
        Refusal{"WrongType",
                "tiny-gpt2",
                "\"n_embd\": 64",
                "\"n_embd\": \"64\"",
                {"m.json: /n_embd: must be an integer from 1 to 2147483647, "
                 "but is the string \"64\""}},
        Refusal{"Zero",
                "tiny-gpt2",
                "\"vocab_size\": 500",
                "\"vocab_size\": 0",
                {"m.json: /vocab_size: must be an integer from 1 to "
                 "2147483647, but is the number 0"}},
        Refusal{"Fraction",
                "tiny-gpt2",
                "\"n_layer\": 2",
                "\"n_layer\": 2.5",
                {"m.json: /n_layer: must be an integer from 1 to 10000, but is "
                 "the number 2.5"}},
        Refusal{"HugeSize",
                "tiny-gpt2",
                "\"n_embd\": 64",
                "\"n_embd\": 1000000000000000000000000000000",
                {"m.json: /n_embd: must be an integer from 1 to 2147483647, "
                 "but is the number 1e+30"}},
        Refusal{"TooManyLayers",
                "tiny-gpt2",
                "\"n_layer\": 2",
                "\"n_layer\": 10001",
                {"m.json: /n_layer: must be an integer from 1 to 10000, but is "
                 "the number 10001"}},
        Refusal{"Rate",
                "tiny-gpt2",
                "\"attn_pdrop\": 0.1",
                "\"attn_pdrop\": 1.0",
                {"m.json: /attn_pdrop: must be a number, at least 0 and below "
                 "1, but is the number 1"}},
        Refusal{"Padding",
                "gpt2-1.2b",
                "51200",
                "50256",
                {"m.json: /padded_vocab_size: 50256 is less than vocab_size "
                 "50257; at least 50257 is needed, a multiple of 128 such as "
                 "50304 is usual"}},
        Refusal{"TwoLengths",
                "tiny-gpt2",
                "\"n_positions\": 32",
                "\"n_positions\": 32, \"n_ctx\": 64",
                {"m.json: /n_ctx: 64 disagrees with n_positions 32; remove one "
                 "of them"}},
        Refusal{"OddRotation",
                "tiny-gptj",
                "\"rotary_dim\": 4",
                "\"rotary_dim\": 5",
                {"m.json: 5 features of a head are to be rotated; it must be "
                 "an even number from 2 to the head's width 8"}},
        Refusal{"ScaleByLayer",
                "tiny-gpt2",
                "{",
                "{\"scale_attn_by_inverse_layer_idx\": true, ",
                {"m.json: /scale_attn_by_inverse_layer_idx: only false is "
                 "supported: all layers are copies of one"}},
        Refusal{"DuplicateKey",
                "tiny-gpt2",
                "\"n_layer\": 2",
                "\"n_layer\": 2, \"n_layer\": 3",
                {"m.json: /n_layer: the key is given twice"}},
        Refusal{"DuplicateKeyWithin",
                "llama-3-405b",
                "\"factor\": 8.0",
                "\"factor\": 8.0, \"factor\": 4.0",
                {"m.json: /rope_scaling/factor: the key is given twice"}},
        Refusal{"NotANumber",
                "tiny-gpt2",
                "\n  \"n_layer\": 2",
                "\n  \"n_layer\": NaN",
                {"m.json:6:14: NaN is not a number that JSON can hold"}},
        Refusal{"Infinity",
                "tiny-gpt2",
                "\n  \"n_layer\": 2",
                "\n  \"n_layer\": -Infinity",
                {"m.json:6:14: -Infinity is not a number that JSON can "
                 "hold"}}),
    [](const auto &test) { return std::string(test.param.test); });

std::string errorOf(const std::string &text,
                    const ShapeOverrides &overrides = {}) {
  Loading loading(text, overrides);
  EXPECT_FALSE(loading.model);
  return loading.allErrors();
}

TEST(Refusals, ReportSeveralAtOnce) {
  EXPECT_EQ(errorOf(R"({"model_type": "gpt2", "n_head": 0, "n_layer": [],
                        "vocab_size": 1e99, "resid_pdrop": -0.5,
                        "activation_function": 3, "tie_word_embeddings": 1})"),
            "m.json: /n_embd: is missing\n"
            "m.json: /n_head: must be an integer from 1 to 2147483647, but is "
            "the number 0\n"
            "m.json: /n_layer: must be an integer from 1 to 10000, but is an "
            "empty array\n"
            "m.json: /vocab_size: must be an integer from 1 to 2147483647, but "
            "is the number 1e+99\n"
            "m.json: /n_positions: is missing\n"
            "m.json: /activation_function: must be a string, but is the number "
            "3\n"
            "m.json: /tie_word_embeddings: must be true or false, but is the "
            "number 1\n"
            "m.json: /resid_pdrop: must be a number, at least 0 and below 1, "
            "but is the number -0.5\n");
}

TEST(Refusals, TextThatIsNotJson) {
  EXPECT_EQ(errorOf("{\"model_type\": \"gpt2\",\n  \"n_layer\" 2}")
                .find("m.json:2:13: not JSON: syntax error"),
            0U);
  for (const char *empty : {"", " \n"})
    EXPECT_EQ(errorOf(empty),
              "m.json: is empty: neither JSON nor textual IR\n");
  EXPECT_NE(errorOf("hello").find("m.json:1:1: not JSON"), std::string::npos);
  EXPECT_NE(errorOf("{\"a\": 1} x").find("expected end of input"),
            std::string::npos);
  EXPECT_EQ(errorOf("[1]"), "m.json: must be an object, but is an array\n");
  EXPECT_EQ(errorOf("{}"),
            "m.json: has neither \"model_type\", as a Hugging Face config has, "
            "nor \"mtplan\", as mtplan's own format has\n");
}

TEST(Refusals, DeepNesting) {
  EXPECT_EQ(errorOf(std::string(8'000'000, '[')),
            "m.json:1:65: nested deeper than 64 levels\n");
  // 64 levels are parsed, and then rejected because they are no model.
  std::string deepest = std::string(63, '[') + std::string(63, ']');
  EXPECT_EQ(errorOf("{\"mtplan\": " + deepest + "}")
                .find("m.json: /mtplan: must be the version 1"),
            0U);
}

TEST(Refusals, ProductsOfHugeSizes) {
  EXPECT_NE(errorOf(R"({"model_type": "gpt2", "n_embd": 2147483647,
                        "n_head": 1, "n_layer": 10000, "n_positions": 1024,
                        "vocab_size": 2147483647, "n_inner": 2147483647})")
                .find("must be from 1 to 2147483647, but is 2147483648"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"model_type": "gpt2", "n_embd": 2147483584,
                        "n_head": 1, "n_layer": 10000, "n_positions": 1024,
                        "vocab_size": 5, "n_inner": 2147483647})")
                .find("a tensor of 2^58 elements or more"),
            std::string::npos);
  // The model has 10,000 * 12 * 2^27 * 2^27 = 1.8 * 2^70 parameters.
  EXPECT_NE(errorOf(R"({"model_type": "gpt2", "n_embd": 134217728,
                        "n_head": 1, "n_layer": 10000, "n_positions": 8,
                        "vocab_size": 5})")
                .find("2^58 parameters or more"),
            std::string::npos);
}

TEST(Refusals, SequencesThatDoNotFit) {
  ShapeOverrides overrides;
  overrides.sequence = 33;
  EXPECT_EQ(errorOf(Loading::example("tiny-gpt2"), overrides),
            "m.json: /n_positions: a sequence of 33 was asked for, but there "
            "are learned positions for 32; at most 32 is possible\n");
  EXPECT_EQ(errorOf(Loading::example("tiny-mistral"), overrides),
            "m.json: /sliding_window: a sequence of 33 is longer than the "
            "window of 32; sliding-window attention is not supported, at most "
            "32 is possible\n");
  overrides.sequence = 8193;
  EXPECT_EQ(errorOf(Loading::example("llama-3-405b"), overrides),
            "m.json: a sequence of 8193 needs rope scaling, which is not "
            "supported; without it at most 8192 is possible\n");
}

TEST(Refusals, OverridesOutOfRange) {
  ShapeOverrides overrides;
  overrides.sequence = 0;
  overrides.layers = 10001;
  overrides.elementType = "bf61";
  EXPECT_EQ(errorOf(Loading::example("tiny-gpt2"), overrides),
            "m.json: the sequence asked for must be from 1 to 2147483647, but "
            "is 0\n"
            "m.json: the number of layers asked for must be from 1 to 10000, "
            "but is 10001\n"
            "m.json: unknown element type \"bf61\"; nearest first, known are "
            "bf16, f16 and f32\n");
}

} // namespace
} // namespace mtplan::ir
