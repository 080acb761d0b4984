//===- tp_names.cpp - Hugging Face's names of operators -------------------===//

#include "tools/exchange/tp_names.h"

namespace mtplan::tools {

namespace {

using Kind = ModuleKind;

struct Family {
  std::vector<std::string_view> names;
  std::vector<TpModule> modules;
};

const std::vector<Family> &families() {
  static const std::vector<Family> all = {
      {{"llama", "mistral", "qwen2"},
       {{"layers.*.self_attn.q_proj", {"h.*.attn.q"}},
        {"layers.*.self_attn.k_proj", {"h.*.attn.k"}},
        {"layers.*.self_attn.v_proj", {"h.*.attn.v"}},
        {"layers.*.self_attn.o_proj", {"h.*.attn.proj"}},
        {"layers.*.mlp.gate_proj", {"h.*.mlp.gate"}},
        {"layers.*.mlp.up_proj", {"h.*.mlp.up"}},
        {"layers.*.mlp.down_proj", {"h.*.mlp.down"}},
        {"layers.*.input_layernorm", {"h.*.ln_1"}, Kind::norm},
        {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, Kind::norm},
        {"embed_tokens", {"wte"}, Kind::embedding},
        {"norm", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}}},
      {{"gpt_neox"},
       {{"layers.*.attention.query_key_value",
         {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"}},
        {"layers.*.attention.dense", {"h.*.attn.proj"}},
        {"layers.*.mlp.dense_h_to_4h", {"h.*.mlp.fc1"}},
        {"layers.*.mlp.dense_4h_to_h", {"h.*.mlp.fc2"}},
        {"layers.*.input_layernorm", {"h.*.ln_1"}, Kind::norm},
        {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, Kind::norm},
        {"embed_in", {"wte"}, Kind::embedding},
        {"final_layer_norm", {"ln_f"}, Kind::norm},
        {"embed_out", {"lm_head"}, Kind::head}}},
      {{"gptj"},
       {{"h.*.attn.q_proj", {"h.*.attn.q"}},
        {"h.*.attn.k_proj", {"h.*.attn.k"}},
        {"h.*.attn.v_proj", {"h.*.attn.v"}},
        {"h.*.attn.out_proj", {"h.*.attn.proj"}},
        {"h.*.mlp.fc_in", {"h.*.mlp.fc1"}},
        {"h.*.mlp.fc_out", {"h.*.mlp.fc2"}},
        {"h.*.ln_1", {"h.*.ln_1"}, Kind::norm},
        {"wte", {"wte"}, Kind::embedding},
        {"ln_f", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}}},
      {{"gpt2"},
       {{"h.*.attn.c_attn", {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"}},
        {"h.*.attn.c_proj", {"h.*.attn.proj"}},
        {"h.*.mlp.c_fc", {"h.*.mlp.fc1"}},
        {"h.*.mlp.c_proj", {"h.*.mlp.fc2"}},
        {"h.*.ln_1", {"h.*.ln_1"}, Kind::norm},
        {"h.*.ln_2", {"h.*.ln_2"}, Kind::norm},
        {"wte", {"wte"}, Kind::embedding},
        {"ln_f", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}}},
  };
  return all;
}

} // namespace

const std::vector<TpModule> *tpModules(std::string_view family) {
  for (const Family &candidate : families())
    for (std::string_view name : candidate.names)
      if (name == family)
        return &candidate.modules;
  return nullptr;
}

std::string tpFamilies() {
  std::string names;
  for (const Family &family : families())
    for (std::string_view name : family.names)
      names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

} // namespace mtplan::tools
