//===- weight_rules_test.cpp - Parameters in the files of other tools -----===//
//
// Names, orders and orientations are those of Transformers' model classes
// (modeling_gpt2.py, modeling_gptj.py, modeling_llama.py, modeling_qwen2.py,
// modeling_bert.py), written out by hand.
//
//===----------------------------------------------------------------------===//

#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

inline void PrintTo(const WeightRule &rule, std::ostream *out) {
  *out << rule.name << " of " << testing::PrintToString(rule.labels)
       << (rule.transposed ? " transposed" : "") << " along " << rule.along;
}

inline bool operator==(const WeightRule &one, const WeightRule &other) {
  return one.name == other.name && one.labels == other.labels &&
         one.transposed == other.transposed && one.along == other.along;
}

namespace {

using testing::HasSubstr;
using Strings = std::vector<std::string>;

std::string whatIsWrong(const std::function<void()> &call) {
  try {
    call();
  } catch (const WeightError &error) {
    return error.what();
  }
  return "nothing";
}

WeightRule asIs(const std::string &name, const std::string &label) {
  return {name, "", {label}, false, 0};
}

WeightRule turned(const std::string &name, const std::string &label) {
  return {name, "", {label}, true, 0};
}

// Returns the names of the weight and the bias of each module.
Strings both(const Strings &modules) {
  Strings made;
  for (const std::string &module : modules) {
    made.push_back(module + ".weight");
    made.push_back(module + ".bias");
  }
  return made;
}

Strings weights(const Strings &modules) {
  Strings made;
  for (const std::string &module : modules)
    made.push_back(module + ".weight");
  return made;
}

Strings operator+(Strings one, const Strings &other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

const Strings kGpt2Labels =
    weights({"wte", "wpe"}) +
    both({"h.*.ln_1", "h.*.attn.q", "h.*.attn.k", "h.*.attn.v", "h.*.attn.proj",
          "h.*.ln_2", "h.*.mlp.fc1", "h.*.mlp.fc2", "ln_f"});
const Strings kLlamaLabels =
    weights({"wte", "h.*.ln_1", "h.*.attn.q", "h.*.attn.k", "h.*.attn.v",
             "h.*.attn.proj", "h.*.ln_2", "h.*.mlp.gate", "h.*.mlp.up",
             "h.*.mlp.down", "ln_f"});
const Strings kQkvBiases = {"h.*.attn.q.bias", "h.*.attn.k.bias",
                            "h.*.attn.v.bias"};
const Strings kHead = {"lm_head.weight"};

Strings namesOf(const WeightTable &table) {
  Strings names;
  for (const WeightRule &rule : table.rules)
    names.push_back(rule.name);
  return names;
}

TEST(WeightRules, Gpt2FusesQueriesKeysAndValues) {
  WeightTable table = weightTable(usualNames("gpt2", 1), kGpt2Labels);
  const std::string h = "transformer.h.0.";
  EXPECT_EQ(
      table.rules,
      (std::vector<WeightRule>{
          asIs("transformer.wte.weight", "wte.weight"),
          asIs("transformer.wpe.weight", "wpe.weight"),
          asIs(h + "ln_1.weight", "h.0.ln_1.weight"),
          asIs(h + "ln_1.bias", "h.0.ln_1.bias"),
          {h + "attn.c_attn.weight",
           "",
           {"h.0.attn.q.weight", "h.0.attn.k.weight", "h.0.attn.v.weight"},
           false,
           1},
          {h + "attn.c_attn.bias",
           "",
           {"h.0.attn.q.bias", "h.0.attn.k.bias", "h.0.attn.v.bias"},
           false,
           0},
          asIs(h + "attn.c_proj.weight", "h.0.attn.proj.weight"),
          asIs(h + "attn.c_proj.bias", "h.0.attn.proj.bias"),
          asIs(h + "ln_2.weight", "h.0.ln_2.weight"),
          asIs(h + "ln_2.bias", "h.0.ln_2.bias"),
          asIs(h + "mlp.c_fc.weight", "h.0.mlp.fc1.weight"),
          asIs(h + "mlp.c_fc.bias", "h.0.mlp.fc1.bias"),
          asIs(h + "mlp.c_proj.weight", "h.0.mlp.fc2.weight"),
          asIs(h + "mlp.c_proj.bias", "h.0.mlp.fc2.bias"),
          asIs("transformer.ln_f.weight", "ln_f.weight"),
          asIs("transformer.ln_f.bias", "ln_f.bias")}));
}

TEST(WeightRules, LlamaIsTransposed) {
  WeightTable table = weightTable(usualNames("llama", 1), kLlamaLabels + kHead);
  const std::string h = "model.layers.0.";
  EXPECT_EQ(table.rules,
            (std::vector<WeightRule>{
                asIs("model.embed_tokens.weight", "wte.weight"),
                turned(h + "self_attn.q_proj.weight", "h.0.attn.q.weight"),
                turned(h + "self_attn.k_proj.weight", "h.0.attn.k.weight"),
                turned(h + "self_attn.v_proj.weight", "h.0.attn.v.weight"),
                turned(h + "self_attn.o_proj.weight", "h.0.attn.proj.weight"),
                turned(h + "mlp.gate_proj.weight", "h.0.mlp.gate.weight"),
                turned(h + "mlp.up_proj.weight", "h.0.mlp.up.weight"),
                turned(h + "mlp.down_proj.weight", "h.0.mlp.down.weight"),
                asIs(h + "input_layernorm.weight", "h.0.ln_1.weight"),
                asIs(h + "post_attention_layernorm.weight", "h.0.ln_2.weight"),
                asIs("model.norm.weight", "ln_f.weight"),
                turned("lm_head.weight", "lm_head.weight")}));
  EXPECT_EQ(weightTable(usualNames("mistral", 1), kLlamaLabels + kHead).rules,
            table.rules);
}

TEST(WeightRules, QwenHasBiasesOfQueriesKeysAndValues) {
  Strings names =
      namesOf(weightTable(usualNames("qwen2", 1), kLlamaLabels + kQkvBiases));
  EXPECT_THAT(names, testing::IsSupersetOf(
                         Strings{"model.layers.0.self_attn.q_proj.bias",
                                 "model.layers.0.self_attn.k_proj.bias",
                                 "model.layers.0.self_attn.v_proj.bias"}));
  EXPECT_EQ(names.size(), 14U);
}

TEST(WeightRules, GptjHasAHeadWithABias) {
  WeightTable table = weightTable(
      usualNames("gptj", 1),
      weights(
          {"wte", "h.*.attn.q", "h.*.attn.k", "h.*.attn.v", "h.*.attn.proj"}) +
          both({"h.*.ln_1", "h.*.mlp.fc1", "h.*.mlp.fc2", "ln_f", "lm_head"}));
  const std::string h = "transformer.h.0.";
  EXPECT_EQ(table.rules,
            (std::vector<WeightRule>{
                asIs("transformer.wte.weight", "wte.weight"),
                asIs(h + "ln_1.weight", "h.0.ln_1.weight"),
                asIs(h + "ln_1.bias", "h.0.ln_1.bias"),
                turned(h + "attn.q_proj.weight", "h.0.attn.q.weight"),
                turned(h + "attn.k_proj.weight", "h.0.attn.k.weight"),
                turned(h + "attn.v_proj.weight", "h.0.attn.v.weight"),
                turned(h + "attn.out_proj.weight", "h.0.attn.proj.weight"),
                turned(h + "mlp.fc_in.weight", "h.0.mlp.fc1.weight"),
                asIs(h + "mlp.fc_in.bias", "h.0.mlp.fc1.bias"),
                turned(h + "mlp.fc_out.weight", "h.0.mlp.fc2.weight"),
                asIs(h + "mlp.fc_out.bias", "h.0.mlp.fc2.bias"),
                asIs("transformer.ln_f.weight", "ln_f.weight"),
                asIs("transformer.ln_f.bias", "ln_f.bias"),
                turned("lm_head.weight", "lm_head.weight"),
                asIs("lm_head.bias", "lm_head.bias")}));
}

TEST(WeightRules, BertNamesItsNormsAfterTheOutput) {
  WeightTable table = weightTable(
      usualNames("bert", 1),
      weights({"wte", "wpe", "wtt"}) +
          both({"embed.norm", "h.*.attn.q", "h.*.attn.k", "h.*.attn.v",
                "h.*.attn.proj", "h.*.ln_1", "h.*.mlp.fc1", "h.*.mlp.fc2",
                "h.*.ln_2", "cls.transform", "cls.norm"}) +
          Strings{"lm_head.bias"});
  std::vector<WeightRule> expected = {
      asIs("bert.embeddings.word_embeddings.weight", "wte.weight"),
      asIs("bert.embeddings.position_embeddings.weight", "wpe.weight"),
      asIs("bert.embeddings.token_type_embeddings.weight", "wtt.weight")};
  auto add = [&](const std::string &name, const std::string &label,
                 bool matrix) {
    expected.push_back(matrix ? turned(name + ".weight", label + ".weight")
                              : asIs(name + ".weight", label + ".weight"));
    expected.push_back(asIs(name + ".bias", label + ".bias"));
  };
  const std::string h = "bert.encoder.layer.0.";
  add("bert.embeddings.LayerNorm", "embed.norm", false);
  add(h + "attention.self.query", "h.0.attn.q", true);
  add(h + "attention.self.key", "h.0.attn.k", true);
  add(h + "attention.self.value", "h.0.attn.v", true);
  add(h + "attention.output.dense", "h.0.attn.proj", true);
  add(h + "attention.output.LayerNorm", "h.0.ln_1", false);
  add(h + "intermediate.dense", "h.0.mlp.fc1", true);
  add(h + "output.dense", "h.0.mlp.fc2", true);
  add(h + "output.LayerNorm", "h.0.ln_2", false);
  add("cls.predictions.transform.dense", "cls.transform", true);
  add("cls.predictions.transform.LayerNorm", "cls.norm", false);
  expected.push_back(asIs("cls.predictions.bias", "lm_head.bias"));
  EXPECT_EQ(table.rules, expected);
  std::map<std::string, std::string> older;
  for (const WeightRule &rule : table.rules)
    if (!rule.olderName.empty())
      older[rule.name] = rule.olderName;
  EXPECT_EQ(older.size(), 8U);
  EXPECT_EQ(older[h + "output.LayerNorm.weight"], h + "output.LayerNorm.gamma");
  EXPECT_EQ(older[h + "output.LayerNorm.bias"], h + "output.LayerNorm.beta");
}

// The table skips tensors that are no parameters. If a skipped tensor is a copy
// of a parameter, the table names that parameter.
TEST(WeightRules, SkipWhatIsNoParameter) {
  auto skipped = [](const std::string &family, const Strings &labels,
                    const std::string &name) -> std::string {
    WeightTable table = weightTable(usualNames(family, 2), labels);
    for (const SkippedWeight &one : table.skipped)
      if (one.name == name)
        return one.of.empty() ? "kept" : one.of;
    return "not";
  };
  EXPECT_EQ(skipped("gpt2", kGpt2Labels, "transformer.h.1.attn.bias"), "kept");
  EXPECT_EQ(skipped("gpt2", kGpt2Labels, "transformer.h.1.attn.masked_bias"),
            "kept");
  EXPECT_EQ(skipped("gpt2", kGpt2Labels, "lm_head.weight"), "wte.weight");
  EXPECT_EQ(skipped("llama", kLlamaLabels,
                    "model.layers.1.self_attn.rotary_emb.inv_freq"),
            "kept");
  EXPECT_EQ(skipped("llama", kLlamaLabels, "lm_head.weight"), "wte.weight");
  // An untied head is no copy.
  EXPECT_EQ(skipped("llama", kLlamaLabels + kHead, "lm_head.weight"), "not");
}

TEST(WeightRules, ParametersWithoutATensorAreRejected) {
  auto wrong = [](const std::string &family, const Strings &labels) {
    return whatIsWrong(
        [&] { (void)weightTable(usualNames(family, 2), labels); });
  };
  EXPECT_EQ(wrong("gpt2", kGpt2Labels), "nothing");
  EXPECT_EQ(wrong("gpt2", kGpt2Labels + Strings{"h.*.attn.qq.weight"}),
            "the parameter \"h.0.attn.qq.weight\" and 1 more of the model is "
            "in no tensor of gpt2 with 2 layers; the nearest is "
            "\"h.0.attn.q.weight\"");
  Strings less = kGpt2Labels;
  std::erase(less, "h.*.attn.k.bias");
  EXPECT_EQ(wrong("gpt2", less),
            "the model has no parameter \"h.0.attn.k.bias\", which gpt2 has in "
            "\"transformer.h.0.attn.c_attn.bias\"");
  EXPECT_EQ(wrong("mistral", kLlamaLabels + kQkvBiases),
            "the parameter \"h.0.attn.k.bias\" and 5 more of the model is in "
            "no tensor of mistral with 2 layers; the nearest is "
            "\"h.0.attn.k.weight\"");
  EXPECT_EQ(whatIsWrong([] { (void)usualNames("gpt-2", 1); }),
            "\"gpt-2\" is no family of weights that is known; there are gpt2, "
            "gptj, llama, mistral, qwen2 and bert, and the nearest is "
            "\"gpt2\"");
}

TEST(WeightRules, UnknownNamesOfAFileAreReported) {
  WeightTable table = weightTable(usualNames("gpt2", 2), kGpt2Labels);
  Strings names = namesOf(table);
  EXPECT_NO_THROW(expectWeights(table, names));
  Strings more = names + Strings{"transformer.h.0.attn.bias", "lm_head.weight"};
  EXPECT_NO_THROW(expectWeights(table, more));
  more.emplace_back("transformer.h.2.ln_1.bias");
  EXPECT_EQ(whatIsWrong([&] { expectWeights(table, more); }),
            "the tensor \"transformer.h.2.ln_1.bias\" does not belong to this "
            "model of gpt2; the nearest is \"transformer.h.0.ln_1.bias\"");
  std::erase(names, "transformer.h.1.attn.c_attn.weight");
  EXPECT_THAT(whatIsWrong([&] { expectWeights(table, names); }),
              HasSubstr("the tensor \"transformer.h.1.attn.c_attn.weight\" of "
                        "gpt2 is missing; the nearest is "));
}

TEST(WeightRules, ShapesOfAFileCombineThoseOfParameters) {
  const WeightRule fused = {"c", "", {"q", "k", "v"}, false, 1};
  using Shapes = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(shapeInFile(fused, Shapes{{4, 6}, {4, 2}, {4, 3}}),
            (std::vector<std::int64_t>{4, 11}));
  WeightRule both = fused;
  both.transposed = true;
  both.along = 0;
  EXPECT_EQ(shapeInFile(both, Shapes{{4, 6}, {4, 2}, {4, 3}}),
            (std::vector<std::int64_t>{11, 4}));
  EXPECT_EQ(shapeInFile(turned("a", "b"), Shapes{{4, 6}}),
            (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(shapeInFile(asIs("a", "b"), Shapes{{4, 6}}),
            (std::vector<std::int64_t>{4, 6}));
  auto wrong = [](const WeightRule &rule, const Shapes &shapes) {
    return whatIsWrong([&] { (void)shapeInFile(rule, shapes); });
  };
  EXPECT_EQ(wrong(fused, {{4, 6}, {5, 6}, {4, 6}}),
            "\"k\" is [5, 6] and \"q\" is [4, 6], which cannot be concatenated "
            "in \"c\"");
  EXPECT_EQ(wrong(fused, {{4, 6}}),
            "\"c\" is of 3 parameters, but there are shapes of 1");
  EXPECT_EQ(wrong(turned("a", "b"), {{4}}),
            "\"b\" is [4], but \"a\" has it turned over, as a matrix");
}

// For two layers, the tensors have the order of ParameterTensors in
// train_gpt2.cu of karpathy/llm.c.
TEST(WeightRules, LlmcStacksLayers) {
  Strings names;
  for (const WeightRule &rule : llmcRules(2))
    names.push_back(rule.name);
  EXPECT_EQ(names,
            (Strings{"wte",        "wpe",        "ln1w.0",     "ln1w.1",
                     "ln1b.0",     "ln1b.1",     "qkvw.0",     "qkvw.1",
                     "qkvb.0",     "qkvb.1",     "attprojw.0", "attprojw.1",
                     "attprojb.0", "attprojb.1", "ln2w.0",     "ln2w.1",
                     "ln2b.0",     "ln2b.1",     "fcw.0",      "fcw.1",
                     "fcb.0",      "fcb.1",      "fcprojw.0",  "fcprojw.1",
                     "fcprojb.0",  "fcprojb.1",  "lnfw",       "lnfb"}));
  EXPECT_EQ(llmcRules(2)[7],
            (WeightRule{
                "qkvw.1",
                "",
                {"h.1.attn.q.weight", "h.1.attn.k.weight", "h.1.attn.v.weight"},
                true,
                0}));
  EXPECT_EQ(llmcRules(2)[0], asIs("wte", "wte.weight"));
  EXPECT_EQ(llmcRules(2)[12], asIs("attprojb.0", "h.0.attn.proj.bias"));
  EXPECT_EQ(llmcRules(2)[22], turned("fcprojw.0", "h.0.mlp.fc2.weight"));
}

} // namespace
} // namespace mtplan::runtime
