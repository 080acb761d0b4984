//===- recognise_test.cpp - Families that tensor names identify -----------===//

#include <functional>

#include <gtest/gtest.h>

#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {
namespace {

using Strings = std::vector<std::string>;

// Returns the names of GPT-2's parameters, which are written out by hand.
Strings gpt2(const std::string &prefix, int layers) {
  Strings names = {prefix + "wte.weight", prefix + "wpe.weight",
                   prefix + "ln_f.weight", prefix + "ln_f.bias"};
  for (int layer = 0; layer < layers; ++layer)
    for (const char *module : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2",
                               "mlp.c_fc", "mlp.c_proj"})
      for (const char *part : {".weight", ".bias"})
        names.push_back(prefix + "h." + std::to_string(layer) + '.' + module +
                        part);
  return names;
}

Strings llama(int layers, const Strings &biases = {}) {
  Strings names = {"model.embed_tokens.weight", "model.norm.weight",
                   "lm_head.weight"};
  for (int layer = 0; layer < layers; ++layer) {
    const std::string h = "model.layers." + std::to_string(layer) + '.';
    for (const char *module :
         {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj",
          "self_attn.v_proj", "self_attn.o_proj", "post_attention_layernorm",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      names.push_back(h + module + ".weight");
    for (const std::string &module : biases)
      names.push_back(h + module + ".bias");
  }
  return names;
}

Strings bert(const std::string &scale, const std::string &shift) {
  Strings names = {"bert.embeddings.word_embeddings.weight",
                   "bert.embeddings.position_embeddings.weight",
                   "bert.embeddings.token_type_embeddings.weight",
                   "bert.pooler.dense.weight",
                   "bert.pooler.dense.bias",
                   "cls.predictions.bias",
                   "cls.predictions.transform.dense.weight",
                   "cls.predictions.transform.dense.bias"};
  const std::string h = "bert.encoder.layer.0.";
  for (const std::string &module :
       {h + "attention.self.query", h + "attention.self.key",
        h + "attention.self.value", h + "attention.output.dense",
        h + "intermediate.dense", h + "output.dense"}) {
    names.push_back(module + ".weight");
    names.push_back(module + ".bias");
  }
  for (const std::string &module :
       {std::string("bert.embeddings"), h + "attention.output", h + "output",
        std::string("cls.predictions.transform")}) {
    names.push_back(module + scale);
    names.push_back(module + shift);
  }
  return names;
}

std::string said(const Strings &names) {
  try {
    WeightNames found = recogniseWeights(names);
    return found.family + " \"" + found.prefix + "\" " +
           std::to_string(found.layers);
  } catch (const WeightError &error) {
    return error.what();
  }
}

Strings without(Strings names, const std::string &name) {
  EXPECT_EQ(std::erase(names, name), 1U) << name;
  return names;
}

TEST(RecogniseWeights, ByTheirNames) {
  EXPECT_EQ(said(gpt2("transformer.", 3)), "gpt2 \"transformer.\" 3");
  EXPECT_EQ(said(gpt2("", 12)), "gpt2 \"\" 12");
  Strings buffers = gpt2("", 1);
  buffers.emplace_back("h.0.attn.bias");
  EXPECT_EQ(said(buffers), "gpt2 \"\" 1");
  EXPECT_EQ(said(llama(2)), "llama \"model.\" 2");
  EXPECT_EQ(said(llama(2, {"self_attn.q_proj", "self_attn.k_proj",
                           "self_attn.v_proj"})),
            "qwen2 \"model.\" 2");
  EXPECT_EQ(said(llama(2, {"self_attn.q_proj", "self_attn.k_proj",
                           "self_attn.v_proj", "self_attn.o_proj"})),
            "llama \"model.\" 2");
  EXPECT_EQ(said(without(llama(1), "lm_head.weight")), "llama \"model.\" 1");
  EXPECT_EQ(said(bert(".LayerNorm.weight", ".LayerNorm.bias")),
            "bert \"bert.\" 1");
  EXPECT_EQ(said(bert(".LayerNorm.gamma", ".LayerNorm.beta")),
            "bert \"bert.\" 1");
}

TEST(RecogniseWeights, MissingTensorsAreReported) {
  EXPECT_EQ(said({}), "there are no tensors");
  EXPECT_EQ(said({"vision.patch", "audio.stem"}),
            "none of the 2 tensors is of a known family, which are gpt2, gptj, "
            "llama, mistral, qwen2 and bert; the first is \"audio.stem\"");
  EXPECT_EQ(said(without(gpt2("transformer.", 2),
                         "transformer.h.1.attn.c_attn.bias")),
            "the tensors are like those of gpt2, but only 27 of 28 are "
            "present; \"transformer.h.1.attn.c_attn.bias\" is missing");
  EXPECT_EQ(said(without(without(llama(1), "model.norm.weight"),
                         "model.embed_tokens.weight")),
            "the tensors are like those of llama, but only 9 of 11 are "
            "present; \"model.embed_tokens.weight\" is missing and 1 more");
  Strings gap = gpt2("", 1);
  for (std::string &name : gap)
    if (name.starts_with("h.0."))
      name.replace(2, 1, "987654321");
  EXPECT_EQ(said(gap), "the tensors are like those of gpt2, but none starts "
                       "with \"h.0.\", though some with \"h.987654321.\"");
  EXPECT_EQ(said({"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"}),
            "the tensors are like those of gpt2, but none starts with "
            "\"h.0.\"");
  // The names are empty or have invalid layer numbers.
  EXPECT_NE(said({"", "h.", "h.-1.x", "h.99999999999999999999.ln_1.bias"}), "");
}

} // namespace
} // namespace mtplan::runtime
