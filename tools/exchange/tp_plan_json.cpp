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
  std::string_view prefix; ///< of modules of the base model: "model."
  std::vector<TpModule> modules;
  /// Says why transformers cannot run the family on tensor ranks; empty if
  /// transformers can.
  std::string_view unable;
};

const std::vector<Family> &families() {
  static const std::vector<Family> all = {
      {{"llama", "mistral", "qwen2"},
       "model.",
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
        {"lm_head", {"lm_head"}, Kind::head}},
       ""},
      {{"gpt_neox"},
       "gpt_neox.",
       {{"layers.*.attention.query_key_value",
         {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"}},
        {"layers.*.attention.dense", {"h.*.attn.proj"}},
        {"layers.*.mlp.dense_h_to_4h", {"h.*.mlp.fc1"}},
        {"layers.*.mlp.dense_4h_to_h", {"h.*.mlp.fc2"}},
        {"layers.*.input_layernorm", {"h.*.ln_1"}, Kind::norm},
        {"layers.*.post_attention_layernorm", {"h.*.ln_2"}, Kind::norm},
        {"embed_in", {"wte"}, Kind::embedding},
        {"final_layer_norm", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}},
       ""},
      {{"gptj"},
       "transformer.",
       {{"h.*.attn.q_proj", {"h.*.attn.q"}},
        {"h.*.attn.k_proj", {"h.*.attn.k"}},
        {"h.*.attn.v_proj", {"h.*.attn.v"}},
        {"h.*.attn.out_proj", {"h.*.attn.proj"}},
        {"h.*.mlp.fc_in", {"h.*.mlp.fc1"}},
        {"h.*.mlp.fc_out", {"h.*.mlp.fc2"}},
        {"h.*.ln_1", {"h.*.ln_1"}, Kind::norm},
        {"wte", {"wte"}, Kind::embedding},
        {"ln_f", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}},
       "its attention counts on all heads being on every rank"},
      {{"gpt2"},
       "transformer.",
       {{"h.*.attn.c_attn", {"h.*.attn.q", "h.*.attn.k", "h.*.attn.v"}},
        {"h.*.attn.c_proj", {"h.*.attn.proj"}},
        {"h.*.mlp.c_fc", {"h.*.mlp.fc1"}},
        {"h.*.mlp.c_proj", {"h.*.mlp.fc2"}},
        {"h.*.ln_1", {"h.*.ln_1"}, Kind::norm},
        {"h.*.ln_2", {"h.*.ln_2"}, Kind::norm},
        {"wte", {"wte"}, Kind::embedding},
        {"ln_f", {"ln_f"}, Kind::norm},
        {"lm_head", {"lm_head"}, Kind::head}},
       "its Conv1D modules hold weights as [in, out], and splits are for "
       "nn.Linear"},
  };
  return all;
}

// Returns null if the `model_type` is unknown.
const Family *familyNamed(std::string_view family) {
  for (const Family &candidate : families())
    for (std::string_view name : candidate.names)
      if (name == family)
        return &candidate;
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
    StyleName{"embedding_colwise", Style::columns},
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

// Removes the name of the base model, which some files put before a module's
// name.
std::string withoutBase(const std::string &module) {
  for (std::string_view base : {"model.", "transformer.", "gpt_neox."})
    if (module.starts_with(base))
      return module.substr(base.size());
  return module;
}

void readEntry(const std::vector<TpModule> &modules, const std::string &key,
               const json &value, const std::string &pointer, PlanPins &pins) {
  std::string number, pattern = withStar(withoutBase(key), number);
  if (pattern == "embed_out")
    pattern = "lm_head"; // the name before transformers 5
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
  } else if (root.contains("tp_plan")) {
    plan = &root["tp_plan"];
    where = "/tp_plan";
  } else if (root.contains("model_type")) {
    pins.errors.emplace_back("/base_model_tp_plan: is missing");
    return;
  }
  const Family *known = familyNamed(family);
  if (!known) {
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
      readEntry(known->modules, key, *value, base::childPointer(where, key),
                pins);
}

// Returns Hugging Face's word for a split of dimension `place`; empty if no
// word exists.
std::string_view styleOf(int place, Kind kind) {
  if (place == planner::kReplicated)
    return "replicate";
  switch (kind) {
  case Kind::linear:
    return place == 1 ? "colwise" : place == 0 ? "rowwise" : "";
  case Kind::embedding:
    return place == 0   ? "embedding_rowwise"
           : place == 1 ? "embedding_colwise"
                        : "";
  case Kind::head: // the output is all-gathered before the loss
    return place == 1   ? "colwise_gather_output"
           : place == 0 ? "rowwise_split_input"
                        : "";
  case Kind::norm:
    return "";
  }
  return "";
}

/// Finds the styles of modules, which must be the same in all layers.
class StyleFinder {
public:
  StyleFinder(const std::vector<PlacedParameter> &all, int tensorAxis,
              Exported &exported)
      : parameters(all), axis(tensorAxis), out(exported) {}

  /// Returns the module's style. Returns "" if the model lacks the module's
  /// weights. Returns "", with a refusal, if no style fits all weights.
  std::string_view find(const TpModule &module) {
    std::string_view style;
    std::string first;
    for (const PlacedParameter &parameter : parameters) {
      std::string number, pattern = withStar(parameter.name, number);
      const bool matches =
          std::ranges::any_of(module.labels, [&](std::string_view label) {
            return pattern == std::string(label) + ".weight";
          });
      if (!matches)
        continue;
      const int place =
          axis < 0 ? planner::kReplicated : placementOf(parameter.layout, axis);
      const std::string_view here = styleOf(place, module.kind);
      if (here.empty()) {
        out.refuse(fmt::format("{} is split over dimension {}, for which "
                               "transformers has no style; nearest: --splits "
                               "column,row,head,vocab",
                               parameter.name, place));
        return {};
      }
      if (!style.empty() && here != style) {
        out.refuse(fmt::format(
            "{} is {} but {} is {}; transformers has one style for {} of all "
            "layers; nearest: the same --pin for all, or --export dtensor",
            first, style, parameter.name, here, module.module));
        return {};
      }
      if (style.empty())
        first = parameter.name;
      style = here;
    }
    return style;
  }

private:
  const std::vector<PlacedParameter> &parameters;
  const int axis;
  Exported &out;
};

// Checks that the input of a row-split product comes from column-split
// products. Modules exchange no other sharded values.
void refuseBrokenChains(
    const std::vector<std::pair<const TpModule *, std::string_view>> &styles,
    Exported &out) {
  for (const std::string_view branch : {".attn.", ".mlp."}) {
    const TpModule *first = nullptr;
    std::string_view wanted;
    for (const auto &[module, style] : styles) {
      const std::string_view label = module->labels.front();
      if (label.find(branch) == label.npos)
        continue;
      const bool isLast = label.ends_with(".proj") ||
                          label.ends_with(".down") || label.ends_with(".fc2");
      if (!first) {
        first = module;
        wanted = style == "replicate" ? style : "colwise";
      }
      const std::string_view here =
          isLast && wanted == "colwise" ? "rowwise" : wanted;
      if (style != here)
        out.refuse(fmt::format(
            "{} is {}, but {} is {}, and transformers does not change layouts "
            "between them; nearest: {} {}, by --splits column,row,head,vocab",
            first->module, wanted, module->module, style, module->module,
            here));
    }
  }
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
  const Family *known = familyNamed(family);
  if (!known || !known->unable.empty()) {
    out.refuse(
        known ? fmt::format("transformers cannot run {} on tensor ranks: {}; "
                            "nearest: --export dtensor",
                            family, known->unable)
              : fmt::format("no module names are known for \"{}\"; known: {}",
                            family, tpFamilies()));
    return out;
  }
  const int axis = mesh.find("tp");
  StyleFinder finder(parameters, axis, out);
  std::vector<std::pair<const TpModule *, std::string_view>> styles;
  for (const TpModule &module : known->modules)
    if (module.kind != Kind::norm)
      if (std::string_view style = finder.find(module); !style.empty())
        styles.emplace_back(&module, style);
  refuseBrokenChains(styles, out);
  ordered_json plan = ordered_json::object();
  for (const auto &[module, style] : styles)
    plan[(module->kind == Kind::head ? "" : std::string(known->prefix)) +
         std::string(module->module)] = style;
  ordered_json root;
  root["tp_size"] =
      axis < 0 ? 1 : mesh.axes[static_cast<std::size_t>(axis)].size;
  root["tp_plan"] = std::move(plan);
  out.text = root.dump(2) + '\n';
  if (std::ranges::any_of(styles, [](const auto &one) {
        return one.second == "colwise_gather_output";
      }))
    out.note("transformers all-gathers the logits over tp before the loss, "
             "which the plan does not");
  return out;
}

} // namespace mtplan::tools
