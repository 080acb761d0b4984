//===- moe_families.cpp - Mixtral, Qwen2-MoE --------------------*- C++ -*-===//
//
// Experts take the place of the MLP in every layer of Mistral's and Qwen2's
// blocks. Published models drop no tokens. Here each expert has room for
// capacity_factor times an even share of a sample's tokens, because shapes are
// static.
//
//===----------------------------------------------------------------------===//

#include "ir/model/hf_config.h"

namespace mtplan::ir {

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
  // Returning the logits does not change the trained step.
  fields.ignore({"output_router_logits"});
  fields.findings.note(
      "an expert takes " +
      std::to_string(experts.places(config.model.sequence)) +
      " tokens of a sample and drops others; set capacity_factor to change it");
}

// A layer without experts would need a segment of its own, which is not
// supported.
void refuseDenseLayers(Fields &fields) {
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
  refuseDenseLayers(fields);
}

} // namespace mtplan::ir
