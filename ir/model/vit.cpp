//===- vit.cpp - Vision transformers ----------------------------*- C++ -*-===//
//
// Pieces of an image go through one matrix, a class token stands before them,
// and a head classifies its output (Dosovitskiy et al. 2021). There is no
// pooler, as in Hugging Face's classifier.
//
//===----------------------------------------------------------------------===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

namespace {

struct Extent {
  std::int64_t height = 1, width = 1;
};

// Reads a number for both sides, or a list of two.
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

// Returns the number of pieces along one side.
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
  config.readBlockSizes("hidden_size", "num_attention_heads",
                        "num_hidden_layers");
  config.readInner("intermediate_size", /*required=*/true);
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

} // namespace mtplan::ir
