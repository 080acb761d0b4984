//===- tp_plan_test.cpp - Hugging Face's base_model_tp_plan ---------------===//

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
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

// Holds the plan that published Llama configurations have.
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

std::vector<PlacedParameter> llama() {
  return {
      {"wte.weight", kWholeLayout},      {"h.*.ln_1.weight", {{{}}, {}, {}}},
      {"h.*.attn.q.weight", kColumns},   {"h.*.attn.k.weight", kColumns},
      {"h.*.attn.v.weight", kColumns},   {"h.*.attn.proj.weight", kRows},
      {"h.*.mlp.gate.weight", kColumns}, {"h.*.mlp.up.weight", kColumns},
      {"h.*.mlp.down.weight", kRows},    {"lm_head.weight", kColumns}};
}

// transformers applies its own rule to a module that the plan does not name, so
// the table is named, too.
TEST(ExchangeTpPlan, WritesADistributedConfig) {
  Exported written = writeTpPlan("llama", llama(), kMesh);
  EXPECT_EQ(written.text, R"({
  "tp_size": 4,
  "tp_plan": {
    "model.layers.*.self_attn.q_proj": "colwise",
    "model.layers.*.self_attn.k_proj": "colwise",
    "model.layers.*.self_attn.v_proj": "colwise",
    "model.layers.*.self_attn.o_proj": "rowwise",
    "model.layers.*.mlp.gate_proj": "colwise",
    "model.layers.*.mlp.up_proj": "colwise",
    "model.layers.*.mlp.down_proj": "rowwise",
    "model.embed_tokens": "replicate",
    "lm_head": "colwise_gather_output"
  }
}
)");
  EXPECT_THAT(written.notes,
              ElementsAre("transformers all-gathers the logits over tp before "
                          "the loss, which the plan does not"));
  EXPECT_THAT(written.refusals, IsEmpty());
  PlanPins pins = readTpPlan(written.text, "llama");
  EXPECT_THAT(pins.errors, IsEmpty());
  EXPECT_THAT(pins.pins,
              testing::IsSupersetOf({"wte=replicated", "lm_head=vocab",
                                     "h.*.attn.q=column", "h.*.mlp.down=row"}));
}

TEST(ExchangeTpPlan, RefusesLayersThatDiffer) {
  std::vector<PlacedParameter> parameters = llama();
  for (PlacedParameter &parameter : parameters)
    if (parameter.name == "h.*.mlp.gate.weight")
      parameter.name = "h.0.mlp.gate.weight";
  parameters.push_back({"h.1.mlp.gate.weight", kWholeLayout});
  EXPECT_THAT(writeTpPlan("llama", parameters, kMesh).refusals,
              testing::Contains(
                  "h.0.mlp.gate.weight is colwise but h.1.mlp.gate.weight is "
                  "replicate; transformers has one style for "
                  "layers.*.mlp.gate_proj of all layers; nearest: the same "
                  "--pin for all, or --export dtensor"));
}

TEST(ExchangeTpPlan, RefusesLayoutsThatTransformersWouldNotChange) {
  std::vector<PlacedParameter> parameters = llama();
  for (PlacedParameter &parameter : parameters)
    if (parameter.name == "h.*.mlp.up.weight")
      parameter.layout = kWholeLayout;
  EXPECT_THAT(writeTpPlan("llama", parameters, kMesh).refusals,
              ElementsAre("layers.*.mlp.gate_proj is colwise, but "
                          "layers.*.mlp.up_proj is replicate, and transformers "
                          "does not change layouts between them; nearest: "
                          "layers.*.mlp.up_proj colwise, by --splits "
                          "column,row,head,vocab"));
}

TEST(ExchangeTpPlan, RefusesModelsThatTransformersCannotSplit) {
  for (auto [family, reason] :
       {std::pair("gpt2", "its Conv1D modules hold weights as [in, out], and "
                          "splits are for nn.Linear"),
        std::pair("gptj", "its attention counts on all heads being on every "
                          "rank")})
    EXPECT_THAT(writeTpPlan(family, {}, kMesh).refusals,
                ElementsAre(fmt::format("transformers cannot run {} on tensor "
                                        "ranks: {}; nearest: --export dtensor",
                                        family, reason)));
  EXPECT_THAT(writeTpPlan("mixtral", {}, kMesh).refusals,
              ElementsAre("no module names are known for \"mixtral\"; known: "
                          "llama, mistral, qwen2, gpt_neox, gptj, gpt2"));
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
  Exported written = writeTpPlan("gpt_neox",
                                 {{"h.*.attn.q.weight", kColumns},
                                  {"h.*.attn.k.weight", kColumns},
                                  {"h.*.attn.v.weight", kColumns},
                                  {"h.*.attn.proj.weight", kRows},
                                  {"h.*.mlp.fc1.weight", kWholeLayout},
                                  {"h.*.mlp.fc2.weight", kWholeLayout},
                                  {"wte.weight", kColumns},
                                  {"lm_head.weight", kRows}},
                                 kMesh);
  EXPECT_EQ(written.text, R"({
  "tp_size": 4,
  "tp_plan": {
    "gpt_neox.layers.*.attention.query_key_value": "colwise",
    "gpt_neox.layers.*.attention.dense": "rowwise",
    "gpt_neox.layers.*.mlp.dense_h_to_4h": "replicate",
    "gpt_neox.layers.*.mlp.dense_4h_to_h": "replicate",
    "gpt_neox.embed_in": "embedding_colwise",
    "lm_head": "rowwise_split_input"
  }
}
)");
  EXPECT_THAT(written.refusals, IsEmpty());
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
                  "packed_rowwise, embedding_rowwise, embedding_colwise, "
                  "sequence_parallel, replicate, replicated",
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
