//===- families_test.cpp - Hugging Face model families --------------------===//

#include <gtest/gtest.h>

#include "tests/ir/model/loading.h"

namespace mtplan::ir {
namespace {

struct Count {
  const char *example;
  std::int64_t parameters; ///< without padding unless `padded`
  bool padded = false;
};

class ParameterCounts : public testing::TestWithParam<Count> {};

TEST_P(ParameterCounts, MatchThePublishedCounts) {
  Loading loading(Loading::example(GetParam().example));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  const LoadedModel &model = *loading.model;
  EXPECT_EQ(GetParam().padded ? model.parameters
                              : model.parameters - model.paddingParameters,
            GetParam().parameters);
}

// GPT-2 has L (12 h^2 + 13 h) + (51200 + 1024) h + 2 h parameters, with the
// padded vocabulary, as in the paper. The comments on other models sum the
// tensors of the released weights.
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
        // 256000 * 3584 + 42 (2 * 3584 * 4096 + 2 * 3584 * 2048
        //   + 3 * 3584 * 14336 + 4 * 3584) + 3584
        Count{"gemma-2-9b", 9'241'705'984},
        // Biases of q, k and v add 28 (3584 + 2 * 512).
        Count{"qwen2-7b", 7'615'616'512},
        // 32 (2 * 4096^2 + 2 * 4096 * 1024 + 8 * 3 * 4096 * 14336 + 8 * 4096
        //   + 2 * 4096) + 2 * 32000 * 4096 + 4096
        Count{"mixtral-8x7b", 46'702'792'704},
        // 24 (4 * 2048^2 + 3 * 2048 + 60 * 3 * 2048 * 1408 + 60 * 2048
        //   + 3 * 2048 * 5632 + 2048 + 2 * 2048) + 2 * 151936 * 2048 + 2048
        Count{"qwen1.5-moe-a2.7b", 14'315'784'192},
        // 768 (3 * 16^2 + 1) + 198 * 768 + 12 (12 * 768^2 + 13 * 768)
        //   + 2 * 768 + 1000 (768 + 1)
        Count{"vit-base", 86'567'656},
        // 32128 * 1024 + 24 (4 * 1024 * 4096 + 2 * 1024 * 16384 + 2 * 1024)
        //   + 24 (8 * 1024 * 4096 + 2 * 1024 * 16384 + 3 * 1024)
        //   + 2 * 32 * 32 + 2 * 1024
        Count{"t5-3b", 2'851'598'336}),
    [](const auto &test) {
      std::string name = test.param.example;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
          '_');
      return name;
    });

// The core of BERT consists of embeddings, blocks and one norm (after the
// embeddings or at the end). It excludes the masked-token head: a square matrix
// with bias, a norm and a bias per token.
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

std::vector<std::int64_t> shapeOfArgument(SegmentOp segment, unsigned i) {
  return llvm::cast<mlir::RankedTensorType>(
             segment.getBlock().getArgument(i).getType())
      .getShape()
      .vec();
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

// The sizes are t5-small, -base and -large, and those of v1.1, whose logits are
// not tied to the embedding.
TEST(T5, HasTheParametersOfTheReleasedWeights) {
  struct Size {
    int width, inner, heads, layers;
    const char *form;
    std::int64_t parameters;
  };
  for (const Size &size :
       {Size{512, 2048, 8, 6, "relu", 60'506'624},
        Size{768, 3072, 12, 12, "relu", 222'903'552},
        Size{1024, 4096, 16, 24, "relu", 737'668'096},
        Size{512, 1024, 6, 8, "gated-gelu", 76'961'152},
        Size{768, 2048, 12, 12, "gated-gelu", 247'577'856},
        Size{1024, 2816, 16, 24, "gated-gelu", 783'150'080}}) {
    bool tied = std::string(size.form) == "relu";
    Loading loading(
        R"({"model_type": "t5", "vocab_size": 32128, "d_kv": 64, "d_model": )" +
        std::to_string(size.width) + R"(, "d_ff": )" +
        std::to_string(size.inner) + R"(, "num_heads": )" +
        std::to_string(size.heads) + R"(, "num_layers": )" +
        std::to_string(size.layers) + R"(, "feed_forward_proj": ")" +
        size.form + R"(", "tie_word_embeddings": )" +
        (tied ? "true" : "false") + "}");
    ASSERT_TRUE(loading.model) << loading.allErrors();
    EXPECT_EQ(loading.model->parameters, size.parameters) << size.width;
    EXPECT_EQ(loading.model->paddingParameters, 0);
    EXPECT_EQ(loading.model->layers, 2 * size.layers);
    EXPECT_EQ(loading.model->sequence, 512);
  }
}

TEST(T5, DecoderLayersPassTheEncoderOutputOn) {
  Loading loading(Loading::example("tiny-t5"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(
      loading.labels("encoder"),
      (std::vector<std::string>{
          "encoder.*.ln_1", "encoder.*.attn.q", "encoder.*.attn.k",
          "encoder.*.attn.v", "encoder.*.attn.core", "encoder.*.attn.proj",
          "encoder.*.attn.drop", "encoder.*.attn.add", "encoder.*.ln_2",
          "encoder.*.mlp.fc1", "encoder.*.mlp.act", "encoder.*.mlp.act_drop",
          "encoder.*.mlp.fc2", "encoder.*.mlp.drop", "encoder.*.mlp.add"}));
  EXPECT_EQ(loading.labels("bridge"),
            (std::vector<std::string>{"encoder.ln_f", "encoder.drop",
                                      "decoder.wte", "decoder.drop"}));
  EXPECT_EQ(loading.labels("head"),
            (std::vector<std::string>{"ln_f", "head.drop", "head.scale",
                                      "lm_head", "loss.max", "loss.sum_exp",
                                      "loss.pick", "loss"}));
  for (auto segment : loading.model->module.get().getOps<SegmentOp>())
    if (segment.getSymName() == "decoder") {
      EXPECT_EQ(segment.getYield().getValues()[1],
                segment.getBlock().getArgument(1));
      EXPECT_EQ(shapeOfArgument(segment, 0)[1], 16);
      EXPECT_EQ(shapeOfArgument(segment, 1)[1], 32);
    }
  // Only tied logits are scaled, by 1 / sqrt(64).
  EXPECT_NE(loading.print().find("by 1.250000e-01"), std::string::npos);
  Loading untied(Loading::example("tiny-t5_v1_1"));
  ASSERT_TRUE(untied.model) << untied.allErrors();
  EXPECT_EQ(untied.print().find("head.scale"), std::string::npos);
  EXPECT_NE(untied.print().find("gelu_tanh"), std::string::npos);
}

TEST(Vit, ClassesAreCountedByTheirNames) {
  std::string named =
      replaced(Loading::example("tiny-vit"), R"("num_labels": 250)",
               R"("id2label": {"0": "a", "1": "b", "2": "c"})");
  Loading loading(named);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->vocabulary, 3);
  // The sequence is 3 rows of 5 patches, and the class token.
  EXPECT_EQ(loading.model->sequence, 16);
  EXPECT_EQ(
      loading.labels("embed"),
      (std::vector<std::string>{"patch", "cls_token", "wpe", "embed.drop"}));
  EXPECT_EQ(loading.labels("head"),
            (std::vector<std::string>{"ln_f", "cls", "classifier", "loss.max",
                                      "loss.sum_exp", "loss.pick", "loss"}));
}

TEST(Vit, ImagesOfPartialPatchesAreRejected) {
  Loading loading(replaced(Loading::example("vit-base"), "\"image_size\": 224",
                           "\"image_size\": 230"));
  EXPECT_FALSE(loading.model);
  EXPECT_EQ(loading.allErrors(),
            "m.json: /patch_size: 16 does not divide image_size 230; images of "
            "224 or 240 would do\n"
            "m.json: /patch_size: 16 does not divide image_size 230; images of "
            "224 or 240 would do\n");
  ShapeOverrides overrides;
  overrides.sequence = 256;
  Loading longer(Loading::example("vit-base"), overrides);
  EXPECT_EQ(longer.allErrors(),
            "m.json: /image_size: makes 197 positions; a sequence of 256 "
            "cannot be asked for: change the image instead\n");
}

TEST(Examples, AllLoadAndVerify) {
  for (const std::string &path : jsonFiles("examples")) {
    Loading loading(readText(path), {}, path);
    ASSERT_TRUE(loading.model) << path << '\n' << loading.allErrors();
    // The printed module can be read again.
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

// The model has 2 blocks of width 64 and inner width 256, 32 positions, and a
// vocabulary of 500 padded to 512.
TEST(Gpt2, PaddingIsCountedSeparately) {
  Loading loading(Loading::example("tiny-gpt2"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.model->vocabulary, 500);
  EXPECT_EQ(loading.model->paddedVocabulary, 512);
  EXPECT_EQ(loading.model->paddingParameters, 12 * 64);
  // 2 (12 * 4096 + 13 * 64) + 544 * 64 + 128
  EXPECT_EQ(loading.model->parameters, 134'912);
  EXPECT_NE(loading.print().find("classes = 500"), std::string::npos);
}

TEST(Gptj, BranchesShareANormAndAreAddedBeforeTheResidual) {
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
  // The table and the head have 12 padding rows each, and the head 12 biases.
  EXPECT_EQ(loading.model->paddingParameters, 2 * 12 * 64 + 12);
}

TEST(GptNeox, ResidualIsParallelOrNot) {
  Loading parallel(Loading::example("tiny-gpt_neox"));
  Loading sequential(Loading::example("tiny-gpt_neox-sequential"));
  ASSERT_TRUE(parallel.model && sequential.model);
  EXPECT_EQ(parallel.labels("h")[1], "h.*.ln_2");
  EXPECT_EQ(sequential.labels("h")[1], "h.*.attn.q");
  // A quarter of a head of width 8 is rotated.
  EXPECT_NE(parallel.print().find("rotary_dim = 2"), std::string::npos);
}

TEST(GptNeox, RotaryShareMayBeInRopeParameters) {
  Loading newer(replaced(Loading::example("tiny-gpt_neox"),
                         "\"rotary_pct\": 0.25",
                         "\"rope_parameters\": {\"rope_type\": \"default\", "
                         "\"partial_rotary_factor\": 0.5}"));
  ASSERT_TRUE(newer.model) << newer.allErrors();
  EXPECT_NE(newer.print().find("rotary_dim = 4"), std::string::npos);
  // GPT-J does not have this key.
  Loading other(replaced(Loading::example("tiny-gptj"), "{",
                         "{\"rope_parameters\": "
                         "{\"partial_rotary_factor\": 0.5},"));
  EXPECT_FALSE(other.model);
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
  // Each of 2 layers has 4 biases of 64, and biases of 192, 192 and 64.
  EXPECT_EQ(biased.model->parameters - plain.model->parameters,
            2 * (4 * 64 + 448));
  EXPECT_EQ(plain.model->parameters - tied.model->parameters, 512 * 64);
}

TEST(Gemma2, NormalisesBeforeAndAfterEachBranchAndCaps) {
  Loading loading(Loading::example("tiny-gemma2"));
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.labels("h"),
            (std::vector<std::string>{
                "h.*.ln_1", "h.*.attn.q", "h.*.attn.k", "h.*.attn.v",
                "h.*.attn.q_rope", "h.*.attn.k_rope", "h.*.attn.core",
                "h.*.attn.proj", "h.*.ln_1_post", "h.*.attn.add", "h.*.ln_2",
                "h.*.mlp.gate", "h.*.mlp.up", "h.*.mlp.act", "h.*.mlp.mul",
                "h.*.mlp.down", "h.*.ln_2_post", "h.*.mlp.add"}));
  const std::string text = loading.print();
  EXPECT_NE(text.find("softcap = 5.000000e+01"), std::string::npos);
  EXPECT_NE(text.find("{cap = 3.000000e+01 : f64}"), std::string::npos);
  EXPECT_NE(text.find("scale = 2.500000e-01"), std::string::npos);
  EXPECT_NE(text.find("by 8.000000e+00"), std::string::npos);
  // The sequence is limited to the sliding window, half of the positions.
  EXPECT_EQ(loading.model->sequence, 32);
}

TEST(Gemma2, ANullCapIsLeftOut) {
  std::string text = Loading::example("tiny-gemma2");
  for (const char *cap : {"50.0", "30.0"})
    text.replace(text.find(cap), 4, "null");
  Loading loading(text);
  ASSERT_TRUE(loading.model) << loading.allErrors();
  EXPECT_EQ(loading.print().find("cap = "), std::string::npos);
}

TEST(Mixtral, ExpertsReplaceTheMlp) {
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

// 32 tokens choose 2 of 8 experts: the mean load is 8, and the capacity is a
// quarter more.
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
  // The capacity is at most the number of tokens.
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

TEST(Qwen2Moe, ASharedExpertProcessesAllTokens) {
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
  // The gates are not normalised, so the attribute is absent.
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
  // The position table keeps its 32 rows, although the sequence is shorter.
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
