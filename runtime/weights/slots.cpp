//===- slots.cpp - The tensors that a family may have ---------------------===//

#include "runtime/weights/slots.h"

#include <algorithm>

#include "base/nearest_word.h"

namespace mtplan::runtime {

namespace {

bool isOfLayer(std::string_view name) {
  return name.find('*') != std::string_view::npos;
}

// Writes the weight or bias of a module, for one layer.
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
    // Outputs are concatenated: columns, or rows if the tensor is transposed.
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
