//===- encoder_families.cpp - Encoders and encoder-decoders ---------------===//

#include <algorithm>
#include <cmath>

#include "ir/model/hf_config.h"

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// BERT as a masked language model
//
// The model has neither pooler nor sentence head, and its loss covers the
// masked tokens. mtplan's own key `layer_norm_placement` selects BERT as
// published (`post`) or Megatron-LM's rearrangement (`pre`; Shoeybi et al.
// 2019, figure 7), which moves the embedding's norm after the last block.
//===----------------------------------------------------------------------===//

void readBert(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readUsualSizes();
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

//===----------------------------------------------------------------------===//
// Vision transformers
//
// One matrix projects the patches of an image, a class token is put before the
// patches, and a head classifies the output at the class token (Dosovitskiy et
// al. 2021). Like Hugging Face's classifier, the model has no pooler.
//===----------------------------------------------------------------------===//

namespace {

struct Extent {
  std::int64_t height = 1, width = 1;
};

// Reads a height and a width in pixels: one number for both, or a list of two.
Extent readExtent(Fields &fields, const char *key, std::int64_t fallback) {
  const JsonValue *value = fields.value(key);
  if (!value || value->kind != JsonValue::Kind::array) {
    std::int64_t side = fields.sizeIfAny(key).value_or(fallback);
    return {side, side};
  }
  auto sideAt = [&](std::size_t i) {
    return value->items[i].integer.value_or(0);
  };
  if (value->items.size() != 2 || sideAt(0) < 1 || sideAt(1) < 1 ||
      sideAt(0) >= kSizeLimit || sideAt(1) >= kSizeLimit) {
    fields.error(key, "must be a size or a list of two, but is " +
                          value->describe());
    return {};
  }
  return {sideAt(0), sideAt(1)};
}

std::int64_t piecesOf(Fields &fields, std::int64_t image, std::int64_t patch) {
  if (image % patch != 0)
    fields.error("patch_size",
                 std::to_string(patch) + " does not divide image_size " +
                     std::to_string(image) + "; images of " +
                     std::to_string(std::max(patch, image / patch * patch)) +
                     " or " + std::to_string((image / patch + 1) * patch) +
                     " would do");
  return std::max<std::int64_t>(1, image / patch);
}

} // namespace

void readVit(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readUsualSizes();
  Extent image = readExtent(fields, "image_size", 224);
  Extent patch = readExtent(fields, "patch_size", 16);
  std::int64_t channels = fields.sizeIfAny("num_channels").value_or(3);
  model.patchWidth = patch.height * patch.width * channels;
  std::int64_t rows = piecesOf(fields, image.height, patch.height);
  std::int64_t columns = piecesOf(fields, image.width, patch.width);
  if (model.patchWidth >= kSizeLimit || rows * columns >= kSizeLimit - 1)
    fields.error("image_size", "makes pieces that are too many or too large");
  model.positionRows = model.sequence = rows * columns + 1;
  if (config.overrides.sequence.value_or(model.sequence) != model.sequence)
    fields.error("image_size",
                 "makes " + std::to_string(model.sequence) +
                     " positions; a sequence of " +
                     std::to_string(*config.overrides.sequence) +
                     " cannot be asked for: change the image instead");
  config.readClasses();
  config.readActivation("hidden_act", "gelu");
  model.epsilon = fields.number("layer_norm_eps", 1.0e-12, 0.0, 1.0);
  model.causal = false;
  model.queryBias = fields.flag("qkv_bias", true);
  model.tied = false;
  model.headBias = true;
  model.attentionDropout =
      config.readDropout("attention_probs_dropout_prob", 0.0);
  model.residualDropout = config.readDropout("hidden_dropout_prob", 0.0);
  model.embedDropout = model.residualDropout;
  fields.ignore({"encoder_stride", "pooler_act", "pooler_output_size"});
}

//===----------------------------------------------------------------------===//
// T5 and T5 v1.1
//
// The encoder-decoder has RMS norms, no biases, and unscaled attention scores,
// because T5 initialises the query weights smaller instead. In v1.1 the MLP is
// gated and the logits have a separate matrix. If logits are tied to the
// embedding, the decoder's result is first divided by the square root of the
// width. mtplan's own key `decoder_sequence` sets the length of the targets, by
// default the length of the input.
//===----------------------------------------------------------------------===//

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
  // Hugging Face interprets "gelu" in v1.1 as the tanh approximation.
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
