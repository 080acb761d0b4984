//===- families.cpp - The tensors of each model family --------------------===//

#include "runtime/weights/families.h"

#include <algorithm>
#include <array>

#include "base/nearest_word.h"

namespace mtplan::runtime {

namespace {

constexpr Presence kNever = Presence::never, kAlways = Presence::always,
                   kPerhaps = Presence::perhaps;
constexpr ModuleKind kTable = ModuleKind::table, kNorm = ModuleKind::norm,
                     kScale = ModuleKind::scale, kLinear = ModuleKind::linear,
                     kConv1d = ModuleKind::conv1d;

// Describes the head, which has no separate weight if it is tied.
WeightModule headOf(Presence bias) {
  return {"lm_head", {"lm_head"}, kLinear, bias, kPerhaps, false};
}

SkippedModule tiedHead() { return {"lm_head.weight", "wte.weight", false}; }

WeightFamily gpt2() {
  return {"gpt2",
          "transformer.",
          "h.",
          false,
          {{"wte", {"wte"}, kTable},
           {"wpe", {"wpe"}, kTable},
           {"h.*.ln_1", {"h.*.ln_1"}, kNorm},
           {"h.*.attn.c_attn",
            {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"},
            kConv1d,
            kAlways},
           {"h.*.attn.c_proj", {"h.*.attn.proj"}, kConv1d, kAlways},
           {"h.*.ln_2", {"h.*.ln_2"}, kNorm},
           {"h.*.mlp.c_fc", {"h.*.mlp.fc1"}, kConv1d, kAlways},
           {"h.*.mlp.c_proj", {"h.*.mlp.fc2"}, kConv1d, kAlways},
           {"ln_f", {"ln_f"}, kNorm},
           headOf(kNever)},
          {tiedHead(), {"h.*.attn.bias"}, {"h.*.attn.masked_bias"}}};
}

WeightFamily gptj() {
  return {"gptj",
          "transformer.",
          "h.",
          false,
          {{"wte", {"wte"}, kTable},
           {"h.*.ln_1", {"h.*.ln_1"}, kNorm},
           {"h.*.attn.q_proj", {"h.*.attn.q"}},
           {"h.*.attn.k_proj", {"h.*.attn.k"}},
           {"h.*.attn.v_proj", {"h.*.attn.v"}},
           {"h.*.attn.out_proj", {"h.*.attn.proj"}},
           {"h.*.mlp.fc_in", {"h.*.mlp.fc1"}, kLinear, kAlways},
           {"h.*.mlp.fc_out", {"h.*.mlp.fc2"}, kLinear, kAlways},
           {"ln_f", {"ln_f"}, kNorm},
           headOf(kAlways)},
          {tiedHead(), {"h.*.attn.bias"}, {"h.*.attn.masked_bias"}}};
}

// Llama, Mistral and Qwen2 differ only in their biases.
WeightFamily llamaLike(std::string_view name, Presence ofInputs,
                       Presence ofOthers) {
  return {name,
          "model.",
          "layers.",
          false,
          {{"embed_tokens", {"wte"}, kTable},
           {"layers.*.self_attn.q_proj", {"h.*.attn.q"}, kLinear, ofInputs},
           {"layers.*.self_attn.k_proj", {"h.*.attn.k"}, kLinear, ofInputs},
           {"layers.*.self_attn.v_proj", {"h.*.attn.v"}, kLinear, ofInputs},
           {"layers.*.self_attn.o_proj", {"h.*.attn.proj"}, kLinear, ofOthers},
           {"layers.*.mlp.gate_proj", {"h.*.mlp.gate"}, kLinear, ofOthers},
           {"layers.*.mlp.up_proj", {"h.*.mlp.up"}, kLinear, ofOthers},
           {"layers.*.mlp.down_proj", {"h.*.mlp.down"}, kLinear, ofOthers},
           {"layers.*.input_layernorm", {"h.*.ln_1"}, kScale},
           {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, kScale},
           {"norm", {"ln_f"}, kScale},
           headOf(kNever)},
          {tiedHead(),
           {"layers.*.self_attn.rotary_emb.inv_freq"},
           {"rotary_emb.inv_freq"}}};
}

// This is the family of BERT's masked language model. mtplan supports neither
// the pooler nor the next-sentence head.
WeightFamily bert() {
  return {
      "bert",
      "bert.",
      "encoder.layer.",
      true,
      {{"embeddings.word_embeddings", {"wte"}, kTable},
       {"embeddings.position_embeddings", {"wpe"}, kTable},
       {"embeddings.token_type_embeddings", {"wtt"}, kTable},
       {"embeddings.LayerNorm", {"embed.norm"}, kNorm},
       {"encoder.layer.*.attention.self.query",
        {"h.*.attn.q"},
        kLinear,
        kAlways},
       {"encoder.layer.*.attention.self.key", {"h.*.attn.k"}, kLinear, kAlways},
       {"encoder.layer.*.attention.self.value",
        {"h.*.attn.v"},
        kLinear,
        kAlways},
       {"encoder.layer.*.attention.output.dense",
        {"h.*.attn.proj"},
        kLinear,
        kAlways},
       {"encoder.layer.*.attention.output.LayerNorm", {"h.*.ln_1"}, kNorm},
       {"encoder.layer.*.intermediate.dense",
        {"h.*.mlp.fc1"},
        kLinear,
        kAlways},
       {"encoder.layer.*.output.dense", {"h.*.mlp.fc2"}, kLinear, kAlways},
       {"encoder.layer.*.output.LayerNorm", {"h.*.ln_2"}, kNorm},
       {"cls.predictions.transform.dense",
        {"cls.transform"},
        kLinear,
        kAlways,
        kAlways,
        false},
       {"cls.predictions.transform.LayerNorm",
        {"cls.norm"},
        kNorm,
        kNever,
        kAlways,
        false},
       {"cls.predictions.decoder",
        {"lm_head"},
        kLinear,
        kAlways,
        kPerhaps,
        false,
        "cls.predictions.bias"}},
      {{"cls.predictions.decoder.weight", "wte.weight", false},
       {"cls.predictions.decoder.bias", "lm_head.bias", false},
       {"embeddings.position_ids"},
       {"pooler.dense.weight"},
       {"pooler.dense.bias"},
       {"cls.seq_relationship.weight", {}, false},
       {"cls.seq_relationship.bias", {}, false}}};
}

} // namespace

std::span<const WeightFamily> knownFamilies() {
  static const std::array<WeightFamily, 6> kFamilies = {
      gpt2(),
      gptj(),
      llamaLike("llama", kPerhaps, kPerhaps),
      llamaLike("mistral", kNever, kNever),
      llamaLike("qwen2", kAlways, kNever),
      bert()};
  return kFamilies;
}

namespace {

bool isOfLayer(std::string_view name) {
  return name.find('*') != std::string_view::npos;
}

class SlotWriter {
public:
  SlotWriter(const WeightFamily &ofFamily, std::string_view thePrefix,
             std::vector<WeightSlot> &list)
      : family(ofFamily), prefix(thePrefix), slots(list) {}

  void write(const WeightModule &module, std::int64_t layer) {
    const bool linear = module.kind == ModuleKind::linear;
    const bool matrix = linear || module.kind == ModuleKind::conv1d;
    const bool norm = module.kind == ModuleKind::norm;
    WeightSlot &weight = add(module, layer, "weight", norm ? "gamma" : "");
    weight.required = module.weight == Presence::always;
    weight.rule.transposed = linear;
    // Parameters are concatenated along their outputs. The outputs are columns,
    // or rows if the tensor is transposed.
    weight.rule.along = module.labels.size() > 1 && !linear ? 1 : 0;
    if (norm || (matrix && module.bias != Presence::never)) {
      WeightSlot &bias = add(module, layer, "bias", norm ? "beta" : "");
      bias.required = norm || module.bias == Presence::always;
      if (!module.biasName.empty())
        bias.rule.name = module.biasName;
    }
  }

private:
  WeightSlot &add(const WeightModule &module, std::int64_t layer,
                  std::string_view part, std::string_view greek) {
    auto full = [&](std::string_view last) {
      return std::string(module.prefixed ? prefix : std::string_view()) +
             numbered(module.name, layer) + '.' + std::string(last);
    };
    WeightSlot &slot = slots.emplace_back();
    slot.rule.name = full(part);
    if (family.greekNorms && !greek.empty())
      slot.rule.olderName = full(greek);
    for (std::string_view label : module.labels)
      slot.rule.labels.push_back(numbered(label, layer) + '.' +
                                 std::string(part));
    return slot;
  }

  const WeightFamily &family;
  const std::string_view prefix;
  std::vector<WeightSlot> &slots;
};

} // namespace

std::string numbered(std::string_view text, std::int64_t layer) {
  std::string made(text);
  if (std::size_t at = made.find('*'); at != std::string::npos)
    made.replace(at, 1, std::to_string(layer));
  return made;
}

Layers layersBelow(std::int64_t count) {
  Layers layers;
  for (std::int64_t layer = 0; layer < count; ++layer)
    layers.insert(layers.end(), layer);
  return layers;
}

std::vector<WeightSlot> slotsOf(const WeightFamily &family,
                                std::string_view prefix, const Layers &layers) {
  std::vector<WeightSlot> slots;
  SlotWriter writer(family, prefix, slots);
  const std::vector<WeightModule> &modules = family.modules;
  auto ofLayer = [](const WeightModule &one) { return isOfLayer(one.name); };
  const auto first = std::ranges::find_if(modules, ofLayer);
  const auto last = std::find_if_not(first, modules.end(), ofLayer);
  for (auto module = modules.begin(); module != first; ++module)
    writer.write(*module, 0);
  for (std::int64_t layer : layers)
    for (auto module = first; module != last; ++module)
      writer.write(*module, layer);
  for (auto module = last; module != modules.end(); ++module)
    writer.write(*module, 0);
  return slots;
}

std::vector<SkippedWeight> skippedOf(const WeightFamily &family,
                                     std::string_view prefix,
                                     const Layers &layers) {
  std::vector<SkippedWeight> skipped;
  for (const SkippedModule &module : family.skipped) {
    for (std::int64_t layer : isOfLayer(module.name) ? layers : layersBelow(1))
      skipped.push_back(
          {std::string(module.prefixed ? prefix : std::string_view()) +
               numbered(module.name, layer),
           std::string(module.of)});
  }
  return skipped;
}

std::span<const std::string_view> weightFamilies() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const WeightFamily &family : knownFamilies())
      names.push_back(family.name);
    return names;
  }();
  return kNames;
}

std::string familiesText() { return base::listed(weightFamilies(), " and "); }

const WeightFamily &familyCalled(std::string_view name) {
  for (const WeightFamily &family : knownFamilies())
    if (family.name == name)
      return family;
  throw WeightError("\"" + std::string(name) +
                    "\" is no family of weights that is known; " +
                    "there are " + familiesText() + ", and the nearest is \"" +
                    std::string(base::nearestTo(name, weightFamilies())) + '"');
}

WeightNames usualNames(std::string_view family, std::int64_t layers) {
  const WeightFamily &known = familyCalled(family);
  return {std::string(known.name), std::string(known.prefix), layers};
}

} // namespace mtplan::runtime
