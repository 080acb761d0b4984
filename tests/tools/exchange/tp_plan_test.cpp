//===- tp_plan_test.cpp - Hugging Face's base_model_tp_plan ---------------===//

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/tp_plan.h"

namespace {

using namespace mtplan::tools;
using mtplan::planner::Layout;
using mtplan::planner::Mesh;
using mtplan::planner::Reduction;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Mesh kMesh{{{"dp", 2}, {"tp", 4}}};
const Layout kColumns{{{}, {1}}, {}, Reduction::sum};
const Layout kRows{{{1}, {0}}, {}, Reduction::sum};
const Layout kWholeLayout{{{}, {}}, {}, Reduction::sum};

// The plan that published Llama configurations carry.
const char *const kLlama = R"({
  "base_model_tp_plan": {
    "layers.*.self_attn.q_proj": "colwise",
    "layers.*.self_attn.k_proj": "colwise",
    "layers.*.self_attn.v_proj": "colwise",
    "layers.*.self_attn.o_proj": "rowwise",
    "layers.*.mlp.gate_proj": "colwise",
    "layers.*.mlp.up_proj": "colwise",
    "layers.*.mlp.down_proj": "rowwise"
  }
}
)";

TEST(ExchangeTpPlan, WritesLlamasPlan) {
  std::vector<PlacedParameter> parameters = {
      {"wte.weight", kWholeLayout},      {"h.*.ln_1.weight", {{{}}, {}, {}}},
      {"h.*.attn.q.weight", kColumns},   {"h.*.attn.k.weight", kColumns},
      {"h.*.attn.v.weight", kColumns},   {"h.*.attn.proj.weight", kRows},
      {"h.*.mlp.gate.weight", kColumns}, {"h.*.mlp.up.weight", kColumns},
      {"h.*.mlp.down.weight", kRows},    {"lm_head.weight", kWholeLayout}};
  Exported written = writeTpPlan("llama", parameters, kMesh);
  EXPECT_EQ(written.text, kLlama);
  EXPECT_THAT(written.notes, IsEmpty());
}

TEST(ExchangeTpPlan, ReadsLlamasPlanAsPins) {
  PlanPins pins = readTpPlan(kLlama, "llama");
  EXPECT_THAT(pins.errors, IsEmpty());
  EXPECT_THAT(pins.pins,
              UnorderedElementsAre("h.*.attn.q=column", "h.*.attn.k=column",
                                   "h.*.attn.v=column", "h.*.attn.proj=row",
                                   "h.*.mlp.gate=column", "h.*.mlp.up=column",
                                   "h.*.mlp.down=row"));
}

TEST(ExchangeTpPlan, FusedModulesStandForSeveralOperators) {
  PlanPins pins = readTpPlan(
      R"({"model_type": "gpt_neox", "base_model_tp_plan": {
          "gpt_neox.layers.7.attention.query_key_value": "colwise",
          "embed_in": "embedding_rowwise", "embed_out": "colwise_rep",
          "layers.*.input_layernorm": "sequence_parallel"}})",
      "");
  EXPECT_THAT(pins.errors, IsEmpty());
  EXPECT_THAT(pins.pins,
              UnorderedElementsAre("h.7.attn.q=column", "h.7.attn.k=column",
                                   "h.7.attn.v=column", "wte=vocab",
                                   "lm_head=vocab", "h.*.ln_1=sequence"));
  Exported written = writeTpPlan("gpt2",
                                 {{"h.*.attn.q.weight", kColumns},
                                  {"h.*.attn.k.weight", kColumns},
                                  {"h.*.attn.v.weight", kWholeLayout},
                                  {"h.3.mlp.fc1.weight", kColumns},
                                  {"wte.weight", kColumns},
                                  {"lm_head.weight", kColumns}},
                                 kMesh);
  EXPECT_EQ(written.text, R"({
  "base_model_tp_plan": {
    "h.3.mlp.c_fc": "colwise"
  },
  "tp_plan": {
    "lm_head": "colwise_rep"
  }
}
)");
  EXPECT_THAT(written.notes,
              ElementsAre("h.*.attn.c_attn: one module there, but its 3 "
                          "weights here are split differently",
                          "wte: has no word for tp over dimension 1 of the "
                          "weight"));
}

TEST(ExchangeTpPlan, RefusesByPointer) {
  EXPECT_THAT(readTpPlan(R"({"layers.*.self_atn.q_proj": "colwise",
                             "layers.*.mlp.up_proj": "diagonal",
                             "norm": "rowwise"})",
                         "llama")
                  .errors,
              UnorderedElementsAre(
                  "/layers.*.self_atn.q_proj: unknown module; the nearest "
                  "known one is \"layers.*.self_attn.q_proj\"",
                  "/layers.*.mlp.up_proj: must be one of colwise, colwise_rep, "
                  "colwise_gather_output, local_colwise, packed_colwise, "
                  "rowwise, rowwise_rep, rowwise_split_input, local_rowwise, "
                  "packed_rowwise, embedding_rowwise, sequence_parallel, "
                  "replicate, replicated",
                  "/norm: \"rowwise\" does not apply to a norm"));
  EXPECT_THAT(readTpPlan("{}", "bloom").errors,
              ElementsAre("/model_type: no module names are known for "
                          "\"bloom\"; known: llama, mistral, qwen2, gpt_neox, "
                          "gptj, gpt2"));
  EXPECT_THAT(readTpPlan(R"({"model_type": "llama"})", "").errors,
              ElementsAre("/base_model_tp_plan: is missing"));
}

TEST(ExchangeTpPlan, SurvivesBrokenText) {
  std::string whole = kLlama;
  for (std::size_t length = 0; length + 2 < whole.size(); ++length)
    EXPECT_FALSE(readTpPlan(whole.substr(0, length), "llama").errors.empty());
  std::mt19937_64 random(31);
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 3; ++k)
      text[random() % text.size()] = "{}[]\":,.*0\xff"[random() % 11];
    readTpPlan(text, "llama");
  }
  std::string many = "{\"a\":0";
  for (int i = 0; i < 200'000; ++i)
    many += ",\"" + std::to_string(i) + "." + std::string(40, 'x') + "\":1";
  EXPECT_LE(readTpPlan(many + "}", "gptj").errors.size(), 50u);
  EXPECT_FALSE(readTpPlan("[NaN]", "gptj").errors.empty());
}

} // namespace
