//===- families.cpp - The modules of each model family --------------------===//

#include "runtime/weights/families.h"

#include <array>

namespace mtplan::runtime {

namespace {

constexpr Presence kNever = Presence::never, kAlways = Presence::always,
                   kPerhaps = Presence::perhaps;
constexpr ModuleKind kTable = ModuleKind::table, kNorm = ModuleKind::norm,
                     kScale = ModuleKind::scale, kLinear = ModuleKind::linear,
                     kConv1d = ModuleKind::conv1d;

// Describes a head with its own weight. A tied head has no weight.
WeightModule headOf(Presence bias) {
  return {"lm_head", {"lm_head"}, kLinear, bias, kPerhaps, false};
}

SkippedModule tiedHead() { return {"lm_head.weight", "wte.weight", false}; }

WeightFamily gpt2() {
  return {"gpt2",
          "transformer.",
          "h.",
          false,
          {{"wte", {"wte"}, kTable},
           {"wpe", {"wpe"}, kTable},
           {"h.*.ln_1", {"h.*.ln_1"}, kNorm},
           {"h.*.attn.c_attn",
            {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"},
            kConv1d,
            kAlways},
           {"h.*.attn.c_proj", {"h.*.attn.proj"}, kConv1d, kAlways},
           {"h.*.ln_2", {"h.*.ln_2"}, kNorm},
           {"h.*.mlp.c_fc", {"h.*.mlp.fc1"}, kConv1d, kAlways},
           {"h.*.mlp.c_proj", {"h.*.mlp.fc2"}, kConv1d, kAlways},
           {"ln_f", {"ln_f"}, kNorm},
           headOf(kNever)},
          {tiedHead(), {"h.*.attn.bias"}, {"h.*.attn.masked_bias"}}};
}

WeightFamily gptj() {
  return {"gptj",
          "transformer.",
          "h.",
          false,
          {{"wte", {"wte"}, kTable},
           {"h.*.ln_1", {"h.*.ln_1"}, kNorm},
           {"h.*.attn.q_proj", {"h.*.attn.q"}},
           {"h.*.attn.k_proj", {"h.*.attn.k"}},
           {"h.*.attn.v_proj", {"h.*.attn.v"}},
           {"h.*.attn.out_proj", {"h.*.attn.proj"}},
           {"h.*.mlp.fc_in", {"h.*.mlp.fc1"}, kLinear, kAlways},
           {"h.*.mlp.fc_out", {"h.*.mlp.fc2"}, kLinear, kAlways},
           {"ln_f", {"ln_f"}, kNorm},
           headOf(kAlways)},
          {tiedHead(), {"h.*.attn.bias"}, {"h.*.attn.masked_bias"}}};
}

// Llama, Mistral and Qwen2 differ only in their biases.
WeightFamily llamaLike(std::string_view name, Presence ofInputs,
                       Presence ofOthers) {
  return {name,
          "model.",
          "layers.",
          false,
          {{"embed_tokens", {"wte"}, kTable},
           {"layers.*.self_attn.q_proj", {"h.*.attn.q"}, kLinear, ofInputs},
           {"layers.*.self_attn.k_proj", {"h.*.attn.k"}, kLinear, ofInputs},
           {"layers.*.self_attn.v_proj", {"h.*.attn.v"}, kLinear, ofInputs},
           {"layers.*.self_attn.o_proj", {"h.*.attn.proj"}, kLinear, ofOthers},
           {"layers.*.mlp.gate_proj", {"h.*.mlp.gate"}, kLinear, ofOthers},
           {"layers.*.mlp.up_proj", {"h.*.mlp.up"}, kLinear, ofOthers},
           {"layers.*.mlp.down_proj", {"h.*.mlp.down"}, kLinear, ofOthers},
           {"layers.*.input_layernorm", {"h.*.ln_1"}, kScale},
           {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, kScale},
           {"norm", {"ln_f"}, kScale},
           headOf(kNever)},
          {tiedHead(),
           {"layers.*.self_attn.rotary_emb.inv_freq"},
           {"rotary_emb.inv_freq"}}};
}

// Describes the masked language model. mtplan has neither the pooler nor the
// next-sentence head.
WeightFamily bert() {
  return {
      "bert",
      "bert.",
      "encoder.layer.",
      true,
      {{"embeddings.word_embeddings", {"wte"}, kTable},
       {"embeddings.position_embeddings", {"wpe"}, kTable},
       {"embeddings.token_type_embeddings", {"wtt"}, kTable},
       {"embeddings.LayerNorm", {"embed.norm"}, kNorm},
       {"encoder.layer.*.attention.self.query",
        {"h.*.attn.q"},
        kLinear,
        kAlways},
       {"encoder.layer.*.attention.self.key", {"h.*.attn.k"}, kLinear, kAlways},
       {"encoder.layer.*.attention.self.value",
        {"h.*.attn.v"},
        kLinear,
        kAlways},
       {"encoder.layer.*.attention.output.dense",
        {"h.*.attn.proj"},
        kLinear,
        kAlways},
       {"encoder.layer.*.attention.output.LayerNorm", {"h.*.ln_1"}, kNorm},
       {"encoder.layer.*.intermediate.dense",
        {"h.*.mlp.fc1"},
        kLinear,
        kAlways},
       {"encoder.layer.*.output.dense", {"h.*.mlp.fc2"}, kLinear, kAlways},
       {"encoder.layer.*.output.LayerNorm", {"h.*.ln_2"}, kNorm},
       {"cls.predictions.transform.dense",
        {"cls.transform"},
        kLinear,
        kAlways,
        kAlways,
        false},
       {"cls.predictions.transform.LayerNorm",
        {"cls.norm"},
        kNorm,
        kNever,
        kAlways,
        false},
       {"cls.predictions.decoder",
        {"lm_head"},
        kLinear,
        kAlways,
        kPerhaps,
        false,
        "cls.predictions.bias"}},
      {{"cls.predictions.decoder.weight", "wte.weight", false},
       {"cls.predictions.decoder.bias", "lm_head.bias", false},
       {"embeddings.position_ids"},
       {"pooler.dense.weight"},
       {"pooler.dense.bias"},
       {"cls.seq_relationship.weight", {}, false},
       {"cls.seq_relationship.bias", {}, false}}};
}

} // namespace

std::span<const WeightFamily> knownFamilies() {
  static const std::array<WeightFamily, 6> kFamilies = {
      gpt2(),
      gptj(),
      llamaLike("llama", kPerhaps, kPerhaps),
      llamaLike("mistral", kNever, kNever),
      llamaLike("qwen2", kAlways, kNever),
      bert()};
  return kFamilies;
}

} // namespace mtplan::runtime
