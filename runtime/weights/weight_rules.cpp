//===- weight_rules.cpp - Maps parameters to tensors of files -------------===//

#include "runtime/weights/weight_rules.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "base/nearest_word.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/weights/families.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Families by tensor names
//
// The names are matched against each family, with and without its prefix. The
// best match is chosen. Tensors that the chosen family requires and the file
// lacks are reported as missing.
//===----------------------------------------------------------------------===//

namespace {

using Names = std::set<std::string_view>;

// Returns the layer numbers that follow `stem`, such as "transformer.h.".
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

// Describes the match of a file's names with one family and prefix.
struct Guess {
  const WeightFamily *family = nullptr;
  std::string_view prefix;
  Layers layers;
  std::vector<std::string> missing;
  /// `explained` counts the file's names that are in the family. `required`
  /// counts the tensors that the family requires. `found` counts the required
  /// tensors that the file has.
  std::int64_t explained = 0, required = 0, found = 0;

  /// Returns the quality of the match. Higher is better.
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
    throw WeightError("none of the " + std::to_string(given.size()) +
                      " tensors is of a known family, which are " +
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
        like + "but only " + std::to_string(best->found) + " of " +
        std::to_string(best->required) + " are present; \"" +
        best->missing.front() + "\" is missing" +
        (best->missing.size() > 1
             ? " and " + std::to_string(best->missing.size() - 1) + " more"
             : ""));
  return {std::string(best->family->name), std::string(best->prefix), layers};
}

namespace {

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

std::string nearest(std::string_view word,
                    const std::vector<std::string_view> &candidates) {
  return candidates.empty()
             ? std::string()
             : "; the nearest is " + quoted(base::nearestTo(word, candidates));
}

// Returns the quoted name, and adds "and 2 more" if `count` is 3.
std::string andMore(std::string_view first, std::size_t count) {
  return quoted(first) +
         (count > 1 ? " and " + std::to_string(count - 1) + " more" : "");
}

} // namespace

WeightTable weightTable(const WeightNames &names,
                        std::span<const std::string> labels) {
  const WeightFamily &family = familyCalled(names.family);
  std::set<std::string, std::less<>> ours;
  for (const std::string &label : labels) {
    const bool repeats = label.find('*') != std::string::npos;
    for (std::int64_t i = 0; i < (repeats ? names.layers : 1); ++i)
      ours.insert(numbered(label, i));
  }
  WeightTable table;
  table.family = names.family;
  std::set<std::string, std::less<>> theirs;
  std::vector<std::string_view> placed;
  const std::vector<WeightSlot> slots =
      slotsOf(family, names.prefix, layersBelow(names.layers));
  for (const WeightSlot &slot : slots) {
    const std::vector<std::string> &held = slot.rule.labels;
    auto absent = std::ranges::find_if(
        held, [&](const std::string &one) { return !ours.contains(one); });
    placed.insert(placed.end(), held.begin(), held.end());
    if (absent == held.end()) {
      table.rules.push_back(slot.rule);
      theirs.insert(slot.rule.name);
    } else if (slot.required || held.size() > 1) {
      throw WeightError("the model has no parameter " + quoted(*absent) +
                        ", which " + names.family + " has in " +
                        quoted(slot.rule.name));
    }
  }
  for (const WeightRule &rule : table.rules)
    for (const std::string &label : rule.labels)
      ours.erase(label);
  if (!ours.empty())
    throw WeightError("the parameter " + andMore(*ours.begin(), ours.size()) +
                      " of the model is in no tensor of " + names.family +
                      " with " + std::to_string(names.layers) + " layers" +
                      nearest(*ours.begin(), placed));
  for (SkippedWeight &skipped :
       skippedOf(family, names.prefix, layersBelow(names.layers)))
    if (!theirs.contains(skipped.name))
      table.skipped.push_back(std::move(skipped));
  return table;
}

void expectWeights(const WeightTable &table,
                   std::span<const std::string> names) {
  const std::set<std::string_view> given(names.begin(), names.end());
  std::set<std::string_view> known;
  std::vector<std::string_view> wanted, missing;
  for (const WeightRule &rule : table.rules) {
    const bool older = !given.contains(rule.name) && !rule.olderName.empty() &&
                       given.contains(rule.olderName);
    known.insert(older ? rule.olderName : rule.name);
    wanted.push_back(rule.name);
    if (!older && !given.contains(rule.name))
      missing.push_back(rule.name);
  }
  for (const SkippedWeight &skipped : table.skipped)
    known.insert(skipped.name);
  if (!missing.empty())
    throw WeightError("the tensor " + andMore(missing[0], missing.size()) +
                      " of " + table.family + " is missing" +
                      nearest(missing[0], {given.begin(), given.end()}));
  std::vector<std::string_view> strange;
  for (std::string_view name : given)
    if (!known.contains(name))
      strange.push_back(name);
  if (!strange.empty())
    throw WeightError("the tensor " + andMore(strange[0], strange.size()) +
                      " does not belong to this model of " + table.family +
                      nearest(strange[0], wanted));
}

std::map<std::string, WeightRule>
rulesByName(const WeightTable &table, std::span<const std::string> names) {
  const std::set<std::string_view> given(names.begin(), names.end());
  std::map<std::string, WeightRule> rules;
  std::map<std::string_view, const WeightRule *> holders; // by label
  auto add = [&](const std::string &name, const WeightRule &rule) {
    if (given.contains(name))
      rules[name] = rule;
  };
  for (const WeightRule &rule : table.rules) {
    add(rule.name, rule);
    if (!rules.contains(rule.name))
      add(rule.olderName, rule);
    if (rule.labels.size() == 1)
      holders[rule.labels[0]] = &rule;
  }
  for (const SkippedWeight &skipped : table.skipped)
    if (const auto of = holders.find(skipped.of); of != holders.end())
      add(skipped.name, *of->second);
  return rules;
}

std::vector<std::int64_t>
shapeInFile(const WeightRule &rule,
            std::span<const std::vector<std::int64_t>> shapes) {
  if (shapes.size() != rule.labels.size())
    throw WeightError(quoted(rule.name) + " is of " +
                      std::to_string(rule.labels.size()) +
                      " parameters, but there are shapes of " +
                      std::to_string(shapes.size()));
  std::vector<std::int64_t> whole;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<std::int64_t> shape = shapes[i];
    if (rule.transposed && shape.size() != 2)
      throw WeightError(quoted(rule.labels[i]) + " is " + shapeWords(shape) +
                        ", but " + quoted(rule.name) +
                        " has it turned over, as a matrix");
    if (rule.transposed)
      std::ranges::reverse(shape);
    if (i == 0) {
      whole = shape;
      continue;
    }
    const auto along = static_cast<std::size_t>(rule.along);
    bool fits = shape.size() == whole.size() && along < shape.size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d)
      fits = d == along || shape[d] == whole[d];
    if (!fits)
      throw WeightError(
          quoted(rule.labels[i]) + " is " + shapeWords(shapes[i]) + " and " +
          quoted(rule.labels[0]) + " is " + shapeWords(shapes[0]) +
          ", which cannot be concatenated in " + quoted(rule.name));
    whole[along] += shape[along];
  }
  return whole;
}

std::vector<WeightRule> llmcRules(std::int64_t layers) {
  struct Kind {
    std::string_view name;
    std::vector<std::string_view> labels;
    bool isMatrix = false;
  };
  // The kinds are in the order of the struct ParameterTensors in train_gpt2.cu.
  static const std::vector<Kind> kKinds = {
      {"wte", {"wte.weight"}},
      {"wpe", {"wpe.weight"}},
      {"ln1w.*", {"h.*.ln_1.weight"}},
      {"ln1b.*", {"h.*.ln_1.bias"}},
      {"qkvw.*",
       {"h.*.attn.q.weight", "h.*.attn.k.weight", "h.*.attn.v.weight"},
       true},
      {"qkvb.*", {"h.*.attn.q.bias", "h.*.attn.k.bias", "h.*.attn.v.bias"}},
      {"attprojw.*", {"h.*.attn.proj.weight"}, true},
      {"attprojb.*", {"h.*.attn.proj.bias"}},
      {"ln2w.*", {"h.*.ln_2.weight"}},
      {"ln2b.*", {"h.*.ln_2.bias"}},
      {"fcw.*", {"h.*.mlp.fc1.weight"}, true},
      {"fcb.*", {"h.*.mlp.fc1.bias"}},
      {"fcprojw.*", {"h.*.mlp.fc2.weight"}, true},
      {"fcprojb.*", {"h.*.mlp.fc2.bias"}},
      {"lnfw", {"ln_f.weight"}},
      {"lnfb", {"ln_f.bias"}}};
  std::vector<WeightRule> rules;
  for (const Kind &kind : kKinds) {
    const bool repeats = kind.name.find('*') != std::string_view::npos;
    for (std::int64_t layer = 0; layer < (repeats ? layers : 1); ++layer) {
      WeightRule &rule = rules.emplace_back();
      rule.name = numbered(kind.name, layer);
      rule.transposed = kind.isMatrix;
      for (std::string_view label : kind.labels)
        rule.labels.push_back(numbered(label, layer));
    }
  }
  return rules;
}

} // namespace mtplan::runtime
