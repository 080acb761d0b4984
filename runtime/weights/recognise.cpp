//===- recognise.cpp - Recognises families by tensor names ----------------===//
//
// Matches the names against each family, with its prefix and without. The
// family that explains most names is meant; tensors that it requires and this
// file lacks are reported as missing.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "runtime/weights/slots.h"

namespace mtplan::runtime {

namespace {

using Names = std::set<std::string_view>;

// Returns the layer numbers in names that start with `stem`: "transformer.h.".
Layers layersOf(const Names &names, const std::string &stem) {
  Layers layers;
  for (auto name = names.lower_bound(stem);
       name != names.end() && name->starts_with(stem); ++name) {
    std::string_view rest = name->substr(stem.size());
    std::int64_t number = -1;
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc() && number >= 0 &&
        end != rest.data() + rest.size() && *end == '.')
      layers.insert(number);
  }
  return layers;
}

struct Guess {
  const WeightFamily *family = nullptr;
  std::string_view prefix;
  Layers layers;
  std::vector<std::string> missing;
  /// Found: among required.
  std::int64_t explained = 0, required = 0, found = 0;

  /// Higher is better.
  auto score() const {
    return std::tuple(explained - static_cast<std::int64_t>(missing.size()),
                      found);
  }
};

Guess guess(const WeightFamily &family, std::string_view prefix,
            const Names &names) {
  Guess made{&family, prefix, {}, {}, 0, 0, 0};
  made.layers =
      layersOf(names, std::string(prefix) + std::string(family.layers));
  for (const WeightSlot &slot : slotsOf(family, prefix, made.layers)) {
    const std::string &older = slot.rule.olderName;
    const bool has = names.contains(slot.rule.name) ||
                     (!older.empty() && names.contains(older));
    made.explained += has ? 1 : 0;
    if (!slot.required)
      continue;
    ++made.required;
    if (has)
      ++made.found;
    else
      made.missing.push_back(slot.rule.name);
  }
  for (const SkippedWeight &skipped : skippedOf(family, prefix, made.layers))
    made.explained += names.contains(skipped.name) ? 1 : 0;
  return made;
}

} // namespace

WeightNames recogniseWeights(std::span<const std::string> names) {
  const Names given(names.begin(), names.end());
  std::optional<Guess> best;
  for (const WeightFamily &family : knownFamilies())
    for (std::string_view prefix : {family.prefix, std::string_view()}) {
      Guess made = guess(family, prefix, given);
      if (!best || made.score() > best->score())
        best = std::move(made);
    }
  if (given.empty())
    throw WeightError("there are no tensors");
  if (best->found == 0)
    throw WeightError("of the " + std::to_string(given.size()) +
                      " tensors none is of a family that is known, which are " +
                      familiesText() + "; the first is \"" +
                      std::string(*given.begin()) + '"');
  const std::string like =
      "the tensors are like those of " + std::string(best->family->name) + ", ";
  const auto layers = static_cast<std::int64_t>(best->layers.size());
  auto start = [&](std::int64_t layer) {
    std::string text = "\"";
    text += best->prefix;
    text += best->family->layers;
    return text += std::to_string(layer) + ".\"";
  };
  if (layers == 0)
    throw WeightError(like + "but none starts with " + start(0));
  for (std::int64_t layer = 0; layer < layers; ++layer)
    if (!best->layers.contains(layer))
      throw WeightError(like + "but none starts with " + start(layer) +
                        ", though some with " + start(*best->layers.rbegin()));
  if (!best->missing.empty())
    throw WeightError(
        like + "of which there are " + std::to_string(best->found) + " of " +
        std::to_string(best->required) + "; \"" + best->missing.front() +
        "\" is missing" +
        (best->missing.size() > 1
             ? " and " + std::to_string(best->missing.size() - 1) + " more"
             : ""));
  return {std::string(best->family->name), std::string(best->prefix), layers};
}

} // namespace mtplan::runtime
