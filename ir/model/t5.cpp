//===- t5.cpp - T5 and T5 v1.1 ----------------------------------*- C++ -*-===//
//
// An encoder-decoder has RMS norms, no biases, and scores that are not scaled,
// because the queries are drawn smaller. In v1.1 the MLP is gated and the
// logits have a matrix of their own. Tied logits read outputs divided by the
// square root of the width. mtplan's own key `decoder_sequence` sets the length
// of the targets, which by default is that of the input.
//
//===----------------------------------------------------------------------===//

#include <cmath>

#include "ir/model/hf_config.h"

namespace mtplan::ir {

void readT5(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  Decoder &decoder = model.decoder;
  config.readBlockSizes("d_model", "num_heads", "num_layers", "", "d_kv");
  config.readInner("d_ff", /*required=*/true);
  config.readVocabulary();
  model.attentionScale = 1.0;
  decoder.layers =
      fields.sizeIfAny("num_decoder_layers", kMaxLayers).value_or(model.layers);
  if (config.overrides.layers)
    decoder.layers = *config.overrides.layers;

  std::int64_t longest = fields.sizeIfAny("n_positions").value_or(512);
  model.sequence = config.overrides.sequence.value_or(longest);
  decoder.sequence =
      fields.sizeIfAny("decoder_sequence").value_or(model.sequence);
  decoder.distances =
      fields.sizeIfAny("relative_attention_num_buckets").value_or(32);
  decoder.maxDistance =
      fields.sizeIfAny("relative_attention_max_distance").value_or(128);
  if (decoder.distances < 4)
    fields.error("relative_attention_num_buckets",
                 std::to_string(decoder.distances) +
                     " is too few: two directions of two need 4");
  if (decoder.maxDistance < 2)
    fields.error("relative_attention_max_distance",
                 std::to_string(decoder.maxDistance) + " is less than 2");

  std::string form = fields.text("feed_forward_proj", "relu");
  constexpr std::string_view kGated = "gated-";
  model.gated = form.starts_with(kGated);
  std::string kind = model.gated ? form.substr(kGated.size()) : form;
  // Hugging Face reads "gelu" in v1.1 as the approximation.
  config.setActivation("feed_forward_proj",
                       model.gated && kind == "gelu" ? "gelu_new" : kind);
  model.rms = true;
  model.epsilon = fields.number("layer_norm_epsilon", 1.0e-6, 0.0, 1.0);
  model.tied = fields.flag("tie_word_embeddings", true);
  if (model.tied)
    decoder.logitScale = 1.0 / std::sqrt(static_cast<double>(model.hidden));
  model.attentionDropout = model.residualDropout = model.embedDropout =
      config.readDropout("dropout_rate", 0.1);
  model.queryBias = model.projBias = model.mlpBias = false;
  config.require("is_encoder_decoder", true, "there are two stacks");
  fields.ignore({"decoder_start_token_id", "dense_act_fn", "is_gated_act",
                 "initializer_factor", "num_hidden_layers", "hidden_size",
                 "num_attention_heads"});
  fields.findings.note("every position attends to every other, or to all "
                       "before it: samples are taken as full, without padding "
                       "tokens");
}

} // namespace mtplan::ir
