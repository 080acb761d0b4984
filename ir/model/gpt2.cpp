//===- gpt2.cpp - GPT-2 and Megatron's GPT ----------------------*- C++ -*-===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

void readGpt2(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readBlockSizes("n_embd", "n_head", "n_layer");
  config.readInner("n_inner", /*required=*/false);
  config.readVocabulary();
  config.readLearnedPositions("n_positions", "n_ctx");
  config.readActivation("activation_function", "gelu_new");
  model.epsilon = fields.number("layer_norm_epsilon", 1.0e-5, 0.0, 1.0);
  model.tied = fields.flag("tie_word_embeddings", true);
  model.attentionDropout = config.readDropout("attn_pdrop", 0.1);
  model.residualDropout = config.readDropout("resid_pdrop", 0.1);
  model.embedDropout = config.readDropout("embd_pdrop", 0.1);
  if (!fields.flag("scale_attn_weights", true))
    model.attentionScale = 1.0;
  config.require("scale_attn_by_inverse_layer_idx", false,
                 "all layers are copies of one");
  config.require("add_cross_attention", false, "there is no encoder");
  // Scores and softmax are always computed in float32.
  fields.ignore({"reorder_and_upcast_attn"});
}

} // namespace mtplan::ir
