//===- gemma2.cpp - Gemma 2 -------------------------------------*- C++ -*-===//
//
// Llama's decoder with norms before and after each branch, an MLP gated by the
// approximate GELU, embeddings scaled by the square root of the width, and soft
// caps on attention scores and logits (Gemma Team 2024). Every other layer sees
// a sliding window, which equals full attention up to the window.
//
//===----------------------------------------------------------------------===//

#include <cmath>

#include "ir/model/hf_config.h"

namespace mtplan::ir {

namespace {

// Hugging Face switches a cap off by null.
double readCap(Fields &fields, const char *key, double fallback) {
  return fields.isNull(key) ? 0.0 : fields.number(key, fallback, 0.0, 1.0e6);
}

} // namespace

void readGemma2(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readBlockSizes("hidden_size", "num_attention_heads",
                        "num_hidden_layers", "num_key_value_heads");
  config.readInner("intermediate_size", /*required=*/true);
  config.readVocabulary();
  config.readTheta("rope_theta");
  config.readRotaryPositions(
      "max_position_embeddings",
      config.readRotaryShare("partial_rotary_factor", 1.0), "sliding_window");
  const double width =
      fields.number("query_pre_attn_scalar", 256.0, 1.0e-6, 1.0e6);
  model.attentionScale = 1.0 / std::sqrt(width);
  model.attentionSoftcap = readCap(fields, "attn_logit_softcapping", 50.0);
  model.logitSoftcap = readCap(fields, "final_logit_softcapping", 30.0);
  config.readActivation("hidden_activation", "gelu_pytorch_tanh");
  model.form = BlockForm::sandwichNorm;
  model.rms = model.gated = true;
  model.epsilon = fields.number("rms_norm_eps", 1.0e-6, 0.0, 1.0);
  model.tied = fields.flag("tie_word_embeddings", true);
  model.embedScale = std::sqrt(static_cast<double>(model.hidden));
  model.attentionDropout = config.readDropout("attention_dropout", 0.0);
  model.queryBias = model.projBias = fields.flag("attention_bias", false);
  model.mlpBias = false;
  fields.ignore({"hidden_act", "layer_types", "cache_implementation",
                 "use_bidirectional_attention"});
  fields.findings.note("gains of norms are stored whole, which Hugging Face "
                       "stores less 1");
}

} // namespace mtplan::ir
