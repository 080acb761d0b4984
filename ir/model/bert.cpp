//===- bert.cpp - BERT as a masked language model ---------------*- C++ -*-===//
//
// The model has neither pooler nor sentence head: the loss is that of the
// masked tokens. mtplan's own key `layer_norm_placement` selects BERT as
// published (`post`) or Megatron-LM's rearrangement (`pre`; Shoeybi et al.
// 2019, figure 7), which moves the embedding's norm behind the last block.
//
//===----------------------------------------------------------------------===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

void readBert(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readBlockSizes("hidden_size", "num_attention_heads",
                        "num_hidden_layers");
  config.readInner("intermediate_size", /*required=*/true);
  config.readVocabulary();
  config.readLearnedPositions("max_position_embeddings");
  config.readActivation("hidden_act", "gelu");
  model.typeRows = fields.sizeIfAny("type_vocab_size").value_or(2);
  model.epsilon = fields.number("layer_norm_eps", 1.0e-12, 0.0, 1.0);
  model.causal = false;
  model.maskedHead = model.headBias = true;
  model.tied = fields.flag("tie_word_embeddings", true);
  model.attentionDropout =
      config.readDropout("attention_probs_dropout_prob", 0.1);
  model.residualDropout = config.readDropout("hidden_dropout_prob", 0.1);
  model.embedDropout = model.residualDropout;

  std::string placement = fields.text("layer_norm_placement", "post");
  if (placement != "post" && placement != "pre")
    fields.error("layer_norm_placement",
                 unknownName("placement", placement, {"post", "pre"}));
  bool post = placement != "pre";
  model.form = post ? BlockForm::postNorm : BlockForm::preNorm;
  model.embedNorm = post;
  model.finalNorm = !post;

  std::string positions = fields.text("position_embedding_type", "absolute");
  if (positions != "absolute")
    fields.error("position_embedding_type",
                 unknownName("kind", positions, {"absolute"}));
  config.require("is_decoder", false, "use a decoder family");
  config.require("add_cross_attention", false, "there is no encoder");
  fields.findings.note("every position attends to every other: samples are "
                       "taken as full, without padding tokens");
}

} // namespace mtplan::ir
