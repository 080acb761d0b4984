//===- origin_rules.cpp - Maps parameters to tensors of files -------------===//

#include "runtime/exchange/origin_rules.h"

#include <algorithm>
#include <charconv>

namespace mtplan::runtime {

std::vector<std::string> parametersOf(const WeightSource &source) {
  std::vector<std::string> names;
  for (const auto &[name, tensor] : source.tensors())
    if (tensor.kind == StateKind::weight)
      names.push_back(name);
  return names;
}

std::map<std::string, WeightRule> rulesOf(const Origin &origin,
                                          const WeightSource &source) {
  const std::vector<std::string> theirs = origin.names();
  const WeightTable table =
      weightTable(recogniseWeights(theirs), parametersOf(source));
  expectWeights(table, theirs);
  return rulesByName(table, theirs);
}

std::vector<WeightRule> usualRules(const WeightSource &source,
                                   const std::string &family) {
  const std::vector<std::string> labels = parametersOf(source);
  const std::int64_t layers = layersOf(source);
  if (!family.empty())
    return weightTable(usualNames(family, layers), labels).rules;
  std::string faults;
  for (const std::string_view name : weightFamilies())
    try {
      return weightTable(usualNames(name, layers), labels).rules;
    } catch (const WeightError &error) {
      faults += "\n" + std::string(name) + ": " + error.what();
    }
  throw WeightError("the model is of no family whose files are known:" +
                    faults);
}

std::int64_t layersOf(const WeightSource &source) {
  constexpr std::string_view kLayer = "h.";
  std::int64_t layers = 0;
  for (const auto &[name, tensor] : source.tensors()) {
    if (!name.starts_with(kLayer))
      continue;
    const char *first = name.data() + kLayer.size();
    std::int64_t number = -1;
    const auto [end, error] =
        std::from_chars(first, name.data() + name.size(), number);
    if (error == std::errc() && *end == '.')
      layers = std::max(layers, number + 1);
  }
  return layers;
}

} // namespace mtplan::runtime
