//===- model_families_test.cpp - Hugging Face families ----------*- C++ -*-===//

#include <gtest/gtest.h>

#include "tests/ir/model_loading.h"

namespace mtplan::ir {
namespace {

struct Count {
  const char *example;
  std::int64_t parameters; ///< without padding, unless `padded`
  bool padded = false;
};

class ParameterCounts : public testing::TestWithParam<Count> {};

TEST_P(ParameterCounts, MatchWhatIsPublished) {
  Loading loading(Loading::example(GetParam().example));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  const LoadedModel &model = *loading.model;
  EXPECT_EQ(GetParam().padded ? model.parameters
                              : model.parameters - model.paddingParameters,
            GetParam().parameters);
}

// GPT-2: L(12 h^2 + 13 h) + (51200 + 1024) h + 2 h, the padded vocabulary
// counted as the paper does. The others: the tensors of the released weights,
// summed by hand in the comments.
INSTANTIATE_TEST_SUITE_P(
    Examples, ParameterCounts,
    testing::Values(
        Count{"gpt2-1.2b", 1'213'479'936, true},
        Count{"gpt2-2.5b", 2'490'408'960, true},
        Count{"gpt2-4.2b", 4'199'109'120, true},
        Count{"gpt2-8.3b", 8'317'040'640, true},
        // 96 (12 * 12288^2 + 13 * 12288) + (51200 + 2048) 12288 + 2 * 12288
        Count{"gpt3-175b", 174'615'846'912, true},
        // 28 (12 * 4096^2 + 7 * 4096) + 2 * 50400 * 4096 + 50400 + 2 * 4096
        Count{"gpt-j-6b", 6'050'882'784},
        // 44 (12 * 6144^2 + 13 * 6144) + 2 * 50432 * 6144 + 2 * 6144
        Count{"gpt-neox-20b", 20'554'567'680},
        // 32 (2 * 4096^2 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096)
        //   + 2 * 128256 * 4096 + 4096
        Count{"llama-3-8b", 8'030'261'248},
        Count{"llama-3-70b", 70'553'706'496},
        Count{"llama-3-405b", 405'853'388'800},
        Count{"mistral-7b", 7'241'732'096},
        // biases on q, k, v: 28 (3584 + 2 * 512) more
        Count{"qwen2-7b", 7'615'616'512},
        // 32 (2 * 4096^2 + 2 * 4096 * 1024 + 8 * 3 * 4096 * 14336 + 8 * 4096
        //   + 2 * 4096) + 2 * 32000 * 4096 + 4096
        Count{"mixtral-8x7b", 46'702'792'704},
        // 24 (4 * 2048^2 + 3 * 2048 + 60 * 3 * 2048 * 1408 + 60 * 2048
        //   + 3 * 2048 * 5632 + 2048 + 2 * 2048) + 2 * 151936 * 2048 + 2048
        Count{"qwen1.5-moe-a2.7b", 14'315'784'192}),
    [](const auto &test) {
      std::string name = test.param.example;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
          '_');
      return name;
    });

// The core of BERT is embeddings, blocks and one norm of the width (the
// embedding's, or the final one that takes its place), without the head for
// masked tokens: a square matrix with bias, a norm and a bias per token.
TEST(Bert, CoreHasTheParametersOfThePaper) {
  struct Size {
    const char *example;
    std::int64_t core, hidden;
  };
  for (const Size &size : {Size{"bert-336m", 334'092'288, 1024},
                           Size{"bert-1.3b", 1'272'164'352, 2048},
                           Size{"bert-3.9b", 3'855'928'320, 2560}}) {
    Loading loading(Loading::example(size.example));
    ASSERT_TRUE(loading.model) << loading.allErrors();
    std::int64_t head = size.hidden * size.hidden + 3 * size.hidden + 30522;
    EXPECT_EQ(loading.model->parameters - loading.model->paddingParameters,
              size.core + head)
        << size.example;
  }
}

TEST(Bert, PlacementMovesTheNorms) {
  Loading post(Loading::example("tiny-bert"));
  Loading pre(replaced(Loading::example("tiny-bert"), "\"post\"", "\"pre\""));
  ASSERT_TRUE(post.model && pre.model) << post.allErrors() << pre.allErrors();
  EXPECT_EQ(post.model->parameters, pre.model->parameters);
  EXPECT_EQ(post.labels("embed").back(), "embed.drop");
  EXPECT_EQ(post.labels("h").front(), "h.*.attn.q");
  EXPECT_EQ(post.labels("h").back(), "h.*.ln_2");
  EXPECT_EQ(post.labels("head").front(), "cls.transform");
  EXPECT_EQ(pre.labels("h").front(), "h.*.ln_1");
  EXPECT_EQ(pre.labels("h").back(), "h.*.mlp.add");
  EXPECT_EQ(pre.labels("head").front(), "ln_f");
}

TEST(Examples, AllLoadAndVerify) {
  for (const std::string &path : jsonFiles("examples")) {
    Loading loading(readText(path), {}, path);
    ASSERT_TRUE(loading.model) << path << '\n' << loading.allErrors();
    // What we print we can read.
    Loading again(loading.print(), {}, "m.mlir");
    ASSERT_TRUE(again.model) << path << '\n' << again.allErrors();
    EXPECT_EQ(again.model->parameters, loading.model->parameters) << path;
    EXPECT_EQ(again.model->layers, loading.model->layers) << path;
    EXPECT_EQ(again.model->sequence, loading.model->sequence) << path;
  }
}

TEST(Gpt2, BlockIsInOrder) {
  Loading loading(Loading::example("tiny-gpt2"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.labels("embed"),
            (std::vector<std::string>{"wte", "wpe", "embed.drop"}));
  EXPECT_EQ(loading.labels("h"),
            (std::vector<std::string>{
                "h.*.ln_1", "h.*.attn.q", "h.*.attn.k", "h.*.attn.v",
                "h.*.attn.core", "h.*.attn.proj", "h.*.attn.drop",
                "h.*.attn.add", "h.*.ln_2", "h.*.mlp.fc1", "h.*.mlp.act",
                "h.*.mlp.fc2", "h.*.mlp.drop", "h.*.mlp.add"}));
  EXPECT_EQ(loading.labels("head"),
            (std::vector<std::string>{"ln_f", "lm_head", "loss.max",
                                      "loss.sum_exp", "loss.pick", "loss"}));
}

// 2 blocks of width 64, inner 256; vocabulary 500, stored as 512; 32 positions.
TEST(Gpt2, PaddingIsCountedApart) {
  Loading loading(Loading::example("tiny-gpt2"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->vocabulary, 500);
  EXPECT_EQ(loading.model->paddedVocabulary, 512);
  EXPECT_EQ(loading.model->paddingParameters, 12 * 64);
  // 2 (12 * 4096 + 13 * 64) + 544 * 64 + 128
  EXPECT_EQ(loading.model->parameters, 134'912);
  EXPECT_NE(loading.print().find("classes = 500"), std::string::npos);
}

TEST(Gptj, BranchesShareANormAndMeetBeforeTheResidual) {
  Loading loading(Loading::example("tiny-gptj"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  std::vector<std::string> labels = loading.labels("h");
  EXPECT_EQ(std::count(labels.begin(), labels.end(), "h.*.ln_1"), 1);
  EXPECT_EQ(std::count(labels.begin(), labels.end(), "h.*.ln_2"), 0);
  EXPECT_EQ(labels[labels.size() - 2], "h.*.attn.add");
  EXPECT_EQ(labels.back(), "h.*.mlp.add");
  std::string text = loading.print();
  EXPECT_NE(text.find("interleaved, rotary_dim = 4"), std::string::npos);
  EXPECT_EQ(text.find("h.*.attn.q.bias"), std::string::npos);
  EXPECT_NE(text.find("h.*.mlp.fc1.bias"), std::string::npos);
  EXPECT_NE(text.find("lm_head.bias"), std::string::npos);
  // 12 rows twice, and 12 biases.
  EXPECT_EQ(loading.model->paddingParameters, 2 * 12 * 64 + 12);
}

TEST(GptNeox, ResidualIsParallelOrNot) {
  Loading parallel(Loading::example("tiny-gpt_neox"));
  Loading sequential(Loading::example("tiny-gpt_neox-sequential"));
  ASSERT_TRUE(parallel.model && sequential.model);
  EXPECT_EQ(parallel.labels("h")[1], "h.*.ln_2");
  EXPECT_EQ(sequential.labels("h")[1], "h.*.attn.q");
  // A quarter of a head of 8.
  EXPECT_NE(parallel.print().find("rotary_dim = 2"), std::string::npos);
}

TEST(Llama, KeysAndValuesAreGrouped) {
  Loading loading(Loading::example("llama-3-8b"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->heads, 32);
  EXPECT_EQ(loading.model->kvHeads, 8);
  EXPECT_EQ(loading.model->headDim, 128);
  std::string text = loading.print();
  EXPECT_NE(text.find("\"h.*.attn.k.weight\" : tensor<4096x1024xbf16>"),
            std::string::npos);
  EXPECT_NE(text.find("mtp.swiglu \"h.*.mlp.act\""), std::string::npos);
}

TEST(Llama, BiasesAndTyingFollowTheConfig) {
  std::string text = Loading::example("tiny-llama");
  Loading plain(text);
  Loading biased(replaced(text, "{",
                          "{\"attention_bias\": true,"
                          "\"mlp_bias\": true, "));
  Loading tied(replaced(text, "\"tie_word_embeddings\": false",
                        "\"tie_word_embeddings\": true"));
  ASSERT_TRUE(plain.model && biased.model && tied.model);
  // 4 biases of 64, and 192 + 192 + 64, in 2 layers.
  EXPECT_EQ(biased.model->parameters - plain.model->parameters,
            2 * (4 * 64 + 448));
  EXPECT_EQ(plain.model->parameters - tied.model->parameters, 512 * 64);
}

TEST(Mixtral, ExpertsTakeThePlaceOfTheMlp) {
  Loading loading(Loading::example("tiny-mixtral"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  std::vector<std::string> labels = loading.labels("h");
  EXPECT_EQ(
      std::vector<std::string>(labels.begin() + 9, labels.end()),
      (std::vector<std::string>{
          "h.*.ln_2", "h.*.moe.router", "h.*.moe.gates", "h.*.moe.slots",
          "h.*.moe.balance", "h.*.moe.dispatch", "h.*.moe.gate", "h.*.moe.up",
          "h.*.moe.act", "h.*.moe.down", "h.*.moe.combine", "h.*.mlp.add"}));
  std::string text = loading.print();
  EXPECT_NE(text.find("{normalise, top_k = 2 : i64}"), std::string::npos);
  EXPECT_NE(text.find("\"h.*.moe.gate.weight\" : tensor<8x64x96xbf16>"),
            std::string::npos);
  EXPECT_NE(text.find("coefficient = 2.000000e-02"), std::string::npos);
  EXPECT_EQ(loading.model->inner, 96);
}

// 2 of 8 experts for each of 32 tokens: 8 apiece, and a quarter more.
TEST(Mixtral, CapacityFollowsFactorAndSequence) {
  std::string text = Loading::example("tiny-mixtral");
  auto places = [](const Loading &loading) -> std::int64_t {
    std::int64_t found = -1;
    if (loading.model)
      loading.model->module.get().walk([&](MoeDispatchOp op) {
        found = llvm::cast<mlir::RankedTensorType>(op.getType()).getDimSize(2);
      });
    return found;
  };
  Loading usual(text);
  EXPECT_EQ(places(usual), 10);
  EXPECT_EQ(usual.model->notes,
            std::vector<std::string>{
                "an expert takes 10 tokens of a sample and drops others; set "
                "capacity_factor to change it"});
  EXPECT_EQ(places(Loading(replaced(text, "{", "{\"capacity_factor\": 1.0, "))),
            8);
  // No token comes twice.
  EXPECT_EQ(places(Loading(replaced(text, "{", "{\"capacity_factor\": 9.0, "))),
            32);
  ShapeOverrides overrides;
  overrides.sequence = 5;
  EXPECT_EQ(places(Loading(text, overrides)), 2); // 5 * 2 / 8 * 1.25 = 1.56
}

TEST(Mixtral, BalanceIsLeftOutAtZero) {
  Loading loading(replaced(Loading::example("tiny-mixtral"),
                           "\"router_aux_loss_coef\": 0.02",
                           "\"router_aux_loss_coef\": 0.0"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.print().find("balance_loss"), std::string::npos);
}

TEST(Qwen2Moe, ASharedExpertServesAllTokens) {
  Loading loading(Loading::example("tiny-qwen2_moe"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  std::vector<std::string> labels = loading.labels("h");
  EXPECT_EQ(
      std::vector<std::string>(labels.end() - 9, labels.end()),
      (std::vector<std::string>{
          "h.*.shared.gate", "h.*.shared.up", "h.*.shared.act",
          "h.*.shared.down", "h.*.shared.router", "h.*.shared.router.sigmoid",
          "h.*.shared.router.scale", "h.*.moe.add", "h.*.mlp.add"}));
  std::string text = loading.print();
  EXPECT_NE(text.find("\"h.*.shared.router.weight\" : tensor<64xbf16>"),
            std::string::npos);
  EXPECT_NE(text.find("\"h.*.attn.q.bias\""), std::string::npos);
  // Gates are what the softmax gives.
  EXPECT_EQ(text.find("normalise"), std::string::npos);
}

TEST(Overrides, ChangeLayersSequenceAndType) {
  ShapeOverrides overrides;
  overrides.layers = 3;
  overrides.sequence = 16;
  overrides.elementType = "f32";
  Loading loading(Loading::example("tiny-gpt2"), overrides);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->layers, 3);
  EXPECT_EQ(loading.model->sequence, 16);
  std::string text = loading.print();
  EXPECT_NE(text.find("mtp.layers = 3"), std::string::npos);
  EXPECT_NE(text.find("@h repeat 3 (%arg0: tensor<1x16x64xf32>)"),
            std::string::npos);
  // The table of positions keeps its rows.
  EXPECT_NE(text.find("\"wpe.weight\" : tensor<32x64xf32>"), std::string::npos);
}

TEST(Sequence, IsCappedWithANote) {
  Loading loading(Loading::example("llama-3-405b"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->sequence, 8192);
  ASSERT_EQ(loading.model->notes.size(), 2U);
  EXPECT_NE(loading.model->notes[0].find("llama3"), std::string::npos);
  EXPECT_NE(loading.model->notes[1].find("131072"), std::string::npos);
}

TEST(Sequence, RotaryMayExceedThePositionsWithANote) {
  ShapeOverrides overrides;
  overrides.sequence = 64;
  Loading loading(Loading::example("tiny-llama"), overrides);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->sequence, 64);
  ASSERT_EQ(loading.model->notes.size(), 1U);
  EXPECT_NE(loading.model->notes[0].find("64 is longer than"),
            std::string::npos);
}

TEST(Notes, NameUnknownKeys) {
  Loading loading(replaced(Loading::example("tiny-gpt2"), "{",
                           "{\"flux\": 1, \"warp\": 2, "));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->notes,
            std::vector<std::string>{"ignored: flux and warp"});
}

} // namespace
} // namespace mtplan::ir
