//===- gptj.cpp - GPT-J -----------------------------------------*- C++ -*-===//
//
// Attention and MLP read the same normalised input in parallel.
//
//===----------------------------------------------------------------------===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

void readGptj(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readBlockSizes("n_embd", "n_head", "n_layer");
  config.readInner("n_inner", /*required=*/false);
  config.readVocabulary();
  std::optional<std::int64_t> rotary = fields.sizeIfAny("rotary_dim");
  config.readTheta("rope_theta");
  config.readRotaryPositions("n_positions", rotary.value_or(64));
  config.readActivation("activation_function", "gelu_new");
  model.interleaved = true;
  model.form = BlockForm::parallel;
  model.queryBias = model.projBias = false;
  model.headBias = true;
  model.epsilon = fields.number("layer_norm_epsilon", 1.0e-5, 0.0, 1.0);
  model.tied = fields.flag("tie_word_embeddings", false);
  model.attentionDropout = config.readDropout("attn_pdrop", 0.0);
  model.residualDropout = config.readDropout("resid_pdrop", 0.0);
  model.embedDropout = config.readDropout("embd_pdrop", 0.0);
  config.require("scale_attn_weights", true, "GPT-J always scales");
  fields.ignore({"n_ctx", "rotary"});
}

} // namespace mtplan::ir
