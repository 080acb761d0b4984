//===- gpt_neox.cpp - GPT-NeoX and Pythia -----------------------*- C++ -*-===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

void readGptNeox(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readBlockSizes("hidden_size", "num_attention_heads",
                        "num_hidden_layers");
  config.readInner("intermediate_size", /*required=*/true);
  config.readVocabulary();
  config.readTheta(fields.has("rope_theta") ? "rope_theta" : "rotary_emb_base");
  config.readRotaryPositions("max_position_embeddings",
                             config.readRotaryShare("rotary_pct", 0.25));
  config.readActivation("hidden_act", "gelu");
  model.form = fields.flag("use_parallel_residual", true)
                   ? BlockForm::parallelTwoNorms
                   : BlockForm::preNorm;
  model.queryBias = model.projBias = fields.flag("attention_bias", true);
  model.epsilon = fields.number("layer_norm_eps", 1.0e-5, 0.0, 1.0);
  model.tied = fields.flag("tie_word_embeddings", false);
  model.attentionDropout = config.readDropout("attention_dropout", 0.0);
  model.residualDropout = config.readDropout("hidden_dropout", 0.0);
  model.embedDropout = model.residualDropout;
}

} // namespace mtplan::ir
