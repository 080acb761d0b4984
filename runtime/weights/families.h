//===- families.h - The tensors of each model family ------------*- C++ -*-===//
//
// For each model class of Transformers, this file lists the modules whose
// tensors are in the files of the class. A `*` in a name stands for the layer
// number, in Transformers' names and in mtplan's.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_WEIGHTS_FAMILIES_H
#define MTPLAN_RUNTIME_WEIGHTS_FAMILIES_H

#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/weights/weight_rules.h"

namespace mtplan::runtime {

/// Names the kind of a module. The kind determines the module's tensors.
enum class ModuleKind : std::uint8_t {
  table,  ///< Embedding: weight [rows, width], as in mtplan
  norm,   ///< LayerNorm: weight and bias
  scale,  ///< RMSNorm: weight
  linear, ///< Linear: weight [out, in]
  conv1d, ///< Conv1D of GPT-2: weight [in, out]
};

enum class Presence : std::uint8_t { never, always, perhaps };

/// Describes a module of Transformers, and the operators of mtplan that the
/// module contains.
struct WeightModule {
  std::string_view name; ///< "h.*.attn.c_attn"
  /// Lists the operators of mtplan in the order of concatenation.
  std::vector<std::string_view> labels;
  ModuleKind kind = ModuleKind::linear;
  Presence bias = Presence::never; ///< bias of a linear or conv1d
  Presence weight = Presence::always;
  bool prefixed = true; ///< false: the name has no prefix, as for heads
  /// Holds the name of the bias. If this is empty, the name is the module's
  /// name + ".bias".
  std::string_view biasName = {};
};

/// Describes a tensor of a file that is not a parameter of mtplan.
struct SkippedModule {
  std::string_view name;
  std::string_view of = {}; ///< label of the copied parameter, or ""
  bool prefixed = true;
};

struct WeightFamily {
  std::string_view name, prefix;
  std::string_view layers; ///< text before the layer number: "h."
  /// Says whether older files call the parameters of norms gamma and beta.
  bool greekNorms = false;
  std::vector<WeightModule> modules; ///< modules with a `*` are adjacent
  std::vector<SkippedModule> skipped;
};

std::span<const WeightFamily> knownFamilies();

/// Describes a tensor of a file. `required` says whether every file of the
/// family contains the tensor.
struct WeightSlot {
  WeightRule rule;
  bool required = true;
};

using Layers = std::set<std::int64_t>;

/// Returns the set {0, ..., count - 1}.
Layers layersBelow(std::int64_t count);

/// Returns the tensors of the given layers and the tensors that belong to no
/// layer, in the order of Transformers' save_pretrained.
std::vector<WeightSlot> slotsOf(const WeightFamily &family,
                                std::string_view prefix, const Layers &layers);

/// Returns the tensors that are not parameters, for the given layers.
std::vector<SkippedWeight> skippedOf(const WeightFamily &family,
                                     std::string_view prefix,
                                     const Layers &layers);

/// \throws WeightError if there is no such family
const WeightFamily &familyCalled(std::string_view name);

/// Replaces the `*` in `text` by a layer number.
std::string numbered(std::string_view text, std::int64_t layer);

/// Returns "gpt2, gptj, llama, mistral, qwen2 and bert".
std::string familiesText();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_WEIGHTS_FAMILIES_H
