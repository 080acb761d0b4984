//===- decoder_families.cpp - Decoders of Hugging Face --------------------===//

#include <cmath>

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

void readGptNeox(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  config.readUsualSizes();
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

//===----------------------------------------------------------------------===//
// Llama, Mistral, Qwen2
//
// All three families have RMS norms, rotary positions in two halves, SwiGLU,
// and grouped keys and values. Mistral adds a sliding window, and Qwen2 adds
// biases on q, k and v.
//===----------------------------------------------------------------------===//

namespace {

void readRotarySizes(HfConfig &config, const char *windowKey) {
  config.readUsualSizes("num_key_value_heads");
  config.readVocabulary();
  config.readTheta("rope_theta");
  config.readRotaryPositions(
      "max_position_embeddings",
      config.readRotaryShare("partial_rotary_factor", 1.0), windowKey);
}

void readLlamaLike(HfConfig &config, const char *windowKey) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  readRotarySizes(config, windowKey);
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

//===----------------------------------------------------------------------===//
// Gemma 2
//
// The model is Llama's decoder with norms before and after each branch, an MLP
// gated by the approximate GELU, embeddings scaled by the square root of the
// width, and soft caps on attention scores and logits (Gemma Team 2024). Every
// other layer has sliding-window attention, which is full attention for
// sequences up to the window.
//===----------------------------------------------------------------------===//

namespace {

// Reads the cap under `key`. Returns 0, which means no cap, if the value is
// null.
double readCap(Fields &fields, const char *key, double fallback) {
  return fields.isNull(key) ? 0.0 : fields.number(key, fallback, 0.0, 1.0e6);
}

} // namespace

void readGemma2(HfConfig &config) {
  Fields &fields = config.fields;
  Transformer &model = config.model;
  readRotarySizes(config, "sliding_window");
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

//===----------------------------------------------------------------------===//
// Mixtral, Qwen2-MoE
//
// Experts replace the MLP in every layer of Mistral's and Qwen2's blocks. The
// published models drop no tokens. In this implementation shapes are static, so
// the capacity of an expert is limited to capacity_factor times the tokens that
// it would receive from a sample if tokens were distributed evenly.
//===----------------------------------------------------------------------===//

namespace {

void readExperts(HfConfig &config, const char *countKey, const char *innerKey) {
  Fields &fields = config.fields;
  Experts &experts = config.model.experts;
  std::optional<std::int64_t> count = fields.size(countKey);
  std::optional<std::int64_t> chosen = fields.size("num_experts_per_tok");
  experts.count = count.value_or(1);
  experts.chosen = chosen.value_or(1);
  experts.inner = config.model.inner = fields.size(innerKey).value_or(1);
  if (count && chosen && *chosen > *count)
    fields.error("num_experts_per_tok", std::to_string(*chosen) +
                                            " is more than " + countKey + ' ' +
                                            std::to_string(*count));
  experts.balance = fields.number("router_aux_loss_coef", 0.001, 0.0, 1.0e6);
  experts.capacityFactor =
      fields.number("capacity_factor", experts.capacityFactor, 0.0, 1.0e6);
  if (experts.capacityFactor <= 0.0)
    fields.error("capacity_factor", "must be above 0");
  // Transformers adds the balance loss only if output_router_logits is true. In
  // mtplan, a coefficient above 0 adds the loss.
  fields.ignore({"output_router_logits"});
  fields.findings.note(
      "an expert takes " +
      std::to_string(experts.places(config.model.sequence)) +
      " tokens of a sample and drops others; set capacity_factor to change it");
}

// Rejects models in which some layers have no experts, because all repeated
// layers are equal.
void rejectDenseLayers(Fields &fields) {
  if (fields.sizeIfAny("decoder_sparse_step").value_or(1) != 1)
    fields.error("decoder_sparse_step",
                 "only 1 is supported: all layers must have experts");
  const JsonValue *dense = fields.value("mlp_only_layers");
  if (!dense)
    return;
  if (dense->kind != JsonValue::Kind::array)
    fields.error("mlp_only_layers",
                 "must be an array, but is " + dense->describe());
  else if (!dense->items.empty())
    fields.error("mlp_only_layers", "names " +
                                        std::to_string(dense->items.size()) +
                                        " layers without experts; only an "
                                        "empty list is supported: all layers "
                                        "must have experts");
}

} // namespace

void readMixtral(HfConfig &config) {
  readMistral(config);
  readExperts(config, "num_local_experts", "intermediate_size");
  if (config.fields.number("router_jitter_noise", 0.0, 0.0, 1.0e6) != 0.0)
    config.fields.error("router_jitter_noise",
                        "only 0 is supported: routing has no noise");
}

void readQwen2Moe(HfConfig &config) {
  Fields &fields = config.fields;
  Experts &experts = config.model.experts;
  readQwen2(config);
  config.model.queryBias = fields.flag("qkv_bias", true);
  readExperts(config, "num_experts", "moe_intermediate_size");
  experts.normalise = fields.flag("norm_topk_prob", false);
  experts.sharedInner =
      fields.size("shared_expert_intermediate_size").value_or(1);
  rejectDenseLayers(fields);
}

} // namespace mtplan::ir
