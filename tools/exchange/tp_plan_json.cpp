//===- tp_plan_json.cpp - Hugging Face's base_model_tp_plan ---------------===//

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/nearest_word.h"
#include "tools/exchange/tp_plan.h"

namespace mtplan::tools {

using json = base::Json;
using nlohmann::ordered_json;

namespace {

enum class Kind : std::uint8_t { linear, embedding, head, norm };

// Describes a module of a model family. A module has several operators if
// Hugging Face fuses operators that are separate in mtplan.
struct TpModule {
  std::string_view module;              ///< "layers.*.self_attn.q_proj"
  std::vector<std::string_view> labels; ///< "h.*.attn.q"
  Kind kind = Kind::linear;
};

struct Family {
  std::vector<std::string_view> names;
  std::vector<TpModule> modules;
};

const std::vector<Family> &families() {
  static const std::vector<Family> all = {
      {{"llama", "mistral", "qwen2"},
       {{"layers.*.self_attn.q_proj", {"h.*.attn.q"}},
        {"layers.*.self_attn.k_proj", {"h.*.attn.k"}},
        {"layers.*.self_attn.v_proj", {"h.*.attn.v"}},
        {"layers.*.self_attn.o_proj", {"h.*.attn.proj"}},
        {"layers.*.mlp.gate_proj", {"h.*.mlp.gate"}},
        {"layers.*.mlp.up_proj", {"h.*.mlp.up"}},
        {"layers.*.mlp.down_proj", {"h.*.mlp.down"}},
        {"layers.*.input_layernorm", {"h.*.ln_1"}, Kind::norm},
        {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, Kind::norm},
        {"embed_tokens", {"wte"}, Kind::embedding},
        {"norm", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}}},
      {{"gpt_neox"},
       {{"layers.*.attention.query_key_value",
         {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"}},
        {"layers.*.attention.dense", {"h.*.attn.proj"}},
        {"layers.*.mlp.dense_h_to_4h", {"h.*.mlp.fc1"}},
        {"layers.*.mlp.dense_4h_to_h", {"h.*.mlp.fc2"}},
        {"layers.*.input_layernorm", {"h.*.ln_1"}, Kind::norm},
        {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, Kind::norm},
        {"embed_in", {"wte"}, Kind::embedding},
        {"final_layer_norm", {"ln_f"}, Kind::norm},
        {"embed_out", {"lm_head"}, Kind::head}}},
      {{"gptj"},
       {{"h.*.attn.q_proj", {"h.*.attn.q"}},
        {"h.*.attn.k_proj", {"h.*.attn.k"}},
        {"h.*.attn.v_proj", {"h.*.attn.v"}},
        {"h.*.attn.out_proj", {"h.*.attn.proj"}},
        {"h.*.mlp.fc_in", {"h.*.mlp.fc1"}},
        {"h.*.mlp.fc_out", {"h.*.mlp.fc2"}},
        {"h.*.ln_1", {"h.*.ln_1"}, Kind::norm},
        {"wte", {"wte"}, Kind::embedding},
        {"ln_f", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}}},
      {{"gpt2"},
       {{"h.*.attn.c_attn", {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"}},
        {"h.*.attn.c_proj", {"h.*.attn.proj"}},
        {"h.*.mlp.c_fc", {"h.*.mlp.fc1"}},
        {"h.*.mlp.c_proj", {"h.*.mlp.fc2"}},
        {"h.*.ln_1", {"h.*.ln_1"}, Kind::norm},
        {"h.*.ln_2", {"h.*.ln_2"}, Kind::norm},
        {"wte", {"wte"}, Kind::embedding},
        {"ln_f", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}}},
  };
  return all;
}

// Returns null if the `model_type` is unknown.
const std::vector<TpModule> *tpModules(std::string_view family) {
  for (const Family &candidate : families())
    for (std::string_view name : candidate.names)
      if (name == family)
        return &candidate.modules;
  return nullptr;
}

std::string tpFamilies() {
  std::string names;
  for (const Family &family : families())
    for (std::string_view name : family.names)
      names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

enum class Style : std::uint8_t { columns, rows, sequence, whole };

struct StyleName {
  std::string_view name;
  Style style;
};

constexpr std::array kStyles = {
    StyleName{"colwise", Style::columns},
    StyleName{"colwise_rep", Style::columns},
    StyleName{"colwise_gather_output", Style::columns},
    StyleName{"local_colwise", Style::columns},
    StyleName{"packed_colwise", Style::columns},
    StyleName{"rowwise", Style::rows},
    StyleName{"rowwise_rep", Style::rows},
    StyleName{"rowwise_split_input", Style::rows},
    StyleName{"local_rowwise", Style::rows},
    StyleName{"packed_rowwise", Style::rows},
    StyleName{"embedding_rowwise", Style::rows},
    StyleName{"sequence_parallel", Style::sequence},
    StyleName{"replicate", Style::whole},
    StyleName{"replicated", Style::whole},
};

std::string styleNames() {
  std::string names;
  for (const StyleName &style : kStyles)
    names += (names.empty() ? "" : ", ") + std::string(style.name);
  return names;
}

// Returns the pin for a style on an operator of this kind, or "".
std::string_view wordFor(Style style, Kind kind) {
  if (style == Style::whole)
    return "replicated";
  if (style == Style::sequence)
    return kind == Kind::norm ? "sequence" : "";
  switch (kind) {
  case Kind::linear:
    return style == Style::columns ? "column" : "row";
  case Kind::embedding:
    return style == Style::columns ? "hidden" : "vocab";
  case Kind::head:
    return style == Style::columns ? "vocab" : "row";
  case Kind::norm:
    return "";
  }
  return "";
}

// Splits "layers.3.mlp.up_proj" into "layers.*.mlp.up_proj" and "3".
std::string withStar(const std::string &name, std::string &number) {
  number = "*";
  for (std::size_t dot = name.find('.'); dot != std::string::npos;
       dot = name.find('.', dot + 1)) {
    std::size_t end = dot + 1;
    while (end < name.size() &&
           std::isdigit(static_cast<unsigned char>(name[end])))
      ++end;
    if (end == dot + 1 || end == name.size() || name[end] != '.')
      continue;
    number = name.substr(dot + 1, end - dot - 1);
    return name.substr(0, dot + 1) + '*' + name.substr(end);
  }
  return name;
}

std::string numbered(std::string_view pattern, const std::string &number) {
  std::string name(pattern);
  if (std::size_t star = name.find('*'); star != std::string::npos)
    name.replace(star, 1, number);
  return name;
}

// Some files put the name of the base model before a module's name.
std::string withoutBase(const std::string &module) {
  for (std::string_view base : {"model.", "transformer.", "gpt_neox."})
    if (module.starts_with(base))
      return module.substr(base.size());
  return module;
}

void readEntry(const std::vector<TpModule> &modules, const std::string &key,
               const json &value, const std::string &pointer, PlanPins &pins) {
  std::string number, pattern = withStar(withoutBase(key), number);
  auto module = std::ranges::find(modules, pattern, &TpModule::module);
  if (module == modules.end()) {
    std::vector<std::string> known;
    known.reserve(modules.size());
    for (const TpModule &candidate : modules)
      known.emplace_back(candidate.module);
    pins.errors.push_back(
        fmt::format("{}: unknown module; the nearest known one is \"{}\"",
                    pointer, base::nearestTo(pattern, known)));
    return;
  }
  const auto *style =
      value.is_string()
          ? std::ranges::find(
                kStyles, std::string_view(value.get_ref<const std::string &>()),
                &StyleName::name)
          : kStyles.end();
  if (style == kStyles.end()) {
    pins.errors.push_back(
        fmt::format("{}: must be one of {}", pointer, styleNames()));
    return;
  }
  std::string_view word = wordFor(style->style, module->kind);
  if (word.empty()) {
    pins.errors.push_back(fmt::format(
        "{}: \"{}\" does not apply to {}", pointer, style->name,
        module->kind == Kind::norm ? "a norm" : "a matrix or a table"));
    return;
  }
  for (std::string_view label : module->labels)
    pins.pins.push_back(fmt::format("{}={}", numbered(label, number), word));
}

void readObject(const json &root, std::string family, PlanPins &pins) {
  const json *plan = &root;
  std::string where;
  if (root.contains("base_model_tp_plan")) {
    plan = &root["base_model_tp_plan"];
    where = "/base_model_tp_plan";
    if (auto type = root.find("model_type");
        family.empty() && type != root.end() && type->is_string())
      family = type->get<std::string>();
  } else if (root.contains("model_type")) {
    pins.errors.emplace_back("/base_model_tp_plan: is missing");
    return;
  }
  const std::vector<TpModule> *modules = tpModules(family);
  if (!modules) {
    pins.errors.push_back(fmt::format(
        "/model_type: no module names are known for \"{}\"; known: {}",
        family.substr(0, 60), tpFamilies()));
    return;
  }
  if (!plan->is_object()) {
    pins.errors.push_back(
        fmt::format("{}: must be an object of module names", where));
    return;
  }
  constexpr std::size_t kMostErrors = 50;
  std::map<std::string, const json *> byName;
  for (const auto &[key, value] : plan->items())
    byName.emplace(key, &value);
  for (const auto &[key, value] : byName)
    if (pins.errors.size() < kMostErrors)
      readEntry(*modules, key, *value, base::childPointer(where, key), pins);
}

// Returns Hugging Face's word for a split of dimension `place`; empty if tp
// does not split the weight, or if no word exists.
std::string_view styleOf(int place, Kind kind) {
  switch (kind) {
  case Kind::linear:
    return place == 1 ? "colwise" : place == 0 ? "rowwise" : "";
  case Kind::embedding:
    return place == 0 ? "embedding_rowwise" : "";
  case Kind::head: // the output is all-gathered before the loss
    return place == 1 ? "colwise_rep" : place == 0 ? "rowwise" : "";
  case Kind::norm:
    return "";
  }
  return "";
}

// Returns the layers that have weights of the module: "*" or numbers.
std::vector<std::string>
numbersOf(const TpModule &module,
          const std::vector<PlacedParameter> &parameters) {
  std::vector<std::string> numbers;
  for (const PlacedParameter &parameter : parameters) {
    std::string number, pattern = withStar(parameter.name, number);
    bool matches =
        std::ranges::any_of(module.labels, [&](std::string_view label) {
          return pattern == std::string(label) + ".weight";
        });
    if (matches && std::ranges::find(numbers, number) == numbers.end())
      numbers.push_back(number);
  }
  return numbers;
}

// Returns the style of one layer's module. Returns an empty text if tp does not
// split the weights. If no style expresses the split, adds a note and returns
// an empty text.
std::string_view styleFor(const TpModule &module, const std::string &number,
                          const std::vector<PlacedParameter> &parameters,
                          int axis, std::vector<std::string> &notes) {
  std::vector<int> places;
  for (std::string_view label : module.labels)
    for (const PlacedParameter &parameter : parameters)
      if (parameter.name == numbered(label, number) + ".weight")
        places.push_back(axis < 0 ? planner::kReplicated
                                  : placementOf(parameter.layout, axis));
  if (std::ranges::count(places, places.front()) !=
      static_cast<std::ptrdiff_t>(places.size())) {
    notes.push_back(fmt::format(
        "{}: one module there, but its {} weights here are split differently",
        numbered(module.module, number), places.size()));
    return {};
  }
  std::string_view style = styleOf(places.front(), module.kind);
  if (style.empty() && places.front() != planner::kReplicated)
    notes.push_back(
        fmt::format("{}: has no word for tp over dimension {} of the weight",
                    numbered(module.module, number), places.front()));
  return style;
}

} // namespace

PlanPins readTpPlan(const std::string &text, const std::string &family) {
  PlanPins pins;
  try {
    json root = base::parseJson(text);
    if (root.is_object())
      readObject(root, family, pins);
    else
      pins.errors.emplace_back("/: must be an object");
  } catch (const base::JsonError &error) {
    pins.errors.emplace_back(error.what());
  }
  return pins;
}

Exported writeTpPlan(const std::string &family,
                     const std::vector<PlacedParameter> &parameters,
                     const planner::Mesh &mesh) {
  Exported out;
  const std::vector<TpModule> *modules = tpModules(family);
  if (!modules) {
    out.notes.push_back(
        fmt::format("no module names are known for \"{}\"; known: {}", family,
                    tpFamilies()));
    return out;
  }
  ordered_json base = ordered_json::object(), head = ordered_json::object();
  for (const TpModule &module : *modules)
    for (const std::string &number : numbersOf(module, parameters)) {
      std::string_view style =
          styleFor(module, number, parameters, mesh.find("tp"), out.notes);
      if (!style.empty())
        (module.kind == Kind::head ? head
                                   : base)[numbered(module.module, number)] =
            style;
    }
  ordered_json root;
  root["base_model_tp_plan"] = std::move(base);
  if (!head.empty())
    root["tp_plan"] = std::move(head);
  out.text = root.dump(2) + '\n';
  return out;
}

} // namespace mtplan::tools
