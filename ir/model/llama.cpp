//===- llama.cpp - Llama, Mistral, Qwen2 ------------------------*- C++ -*-===//
//
// The families share one architecture: RMS norms, rotary positions in two
// halves, SwiGLU, grouped keys and values. Mistral adds a sliding window, and
// Qwen2 adds biases on q, k and v.
//
//===----------------------------------------------------------------------===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

namespace {

void readLlamaLike(HfConfig &config, const char *windowKey) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readBlockSizes("hidden_size", "num_attention_heads",
                        "num_hidden_layers", "num_key_value_heads");
  config.readInner("intermediate_size", /*required=*/true);
  config.readVocabulary();
  config.readTheta("rope_theta");
  config.readRotaryPositions(
      "max_position_embeddings",
      config.readRotaryShare("partial_rotary_factor", 1.0), windowKey);
  std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish")
    fields.error("hidden_act",
                 unknownName("gate activation", activation, {"silu", "swish"}));
  model.activation = Activation::Silu;
  model.rms = model.gated = true;
  model.epsilon = fields.number("rms_norm_eps", 1.0e-6, 0.0, 1.0);
  model.tied = fields.flag("tie_word_embeddings", false);
  model.attentionDropout = config.readDropout("attention_dropout", 0.0);
  model.queryBias = model.projBias = model.mlpBias = false;
}

} // namespace

void readLlama(HfConfig &config) {
  readLlamaLike(config, "");
  Transformer &model = config.model;
  model.queryBias = model.projBias =
      config.fields.flag("attention_bias", false);
  model.mlpBias = config.fields.flag("mlp_bias", false);
}

void readMistral(HfConfig &config) { readLlamaLike(config, "sliding_window"); }

void readQwen2(HfConfig &config) {
  bool window = config.fields.flag("use_sliding_window", false);
  readLlamaLike(config, window ? "sliding_window" : "");
  config.model.queryBias = true;
  config.fields.ignore({"sliding_window", "max_window_layers", "layer_types"});
}

} // namespace mtplan::ir
