//===- families.h - The tensors of each model family ------------*- C++ -*-===//
//
// Describes the classes of Transformers as far as they decide the contents of
// files. A `*` in a name stands for the number of the layer on both sides.
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

enum class ModuleKind : std::uint8_t {
  table,  ///< Embedding: weight [rows, width], as in mtplan
  norm,   ///< LayerNorm: weight and bias
  scale,  ///< RMSNorm: weight
  linear, ///< Linear: weight [out, in]
  conv1d, ///< Conv1D of GPT-2: weight [in, out]
};

/// Whether all files of a family have a tensor.
enum class Presence : std::uint8_t { never, always, perhaps };

struct WeightModule {
  std::string_view name; ///< "h.*.attn.c_attn"
  /// Operators of mtplan, in their order in the file: "h.*.attn.q", ...
  std::vector<std::string_view> labels;
  ModuleKind kind = ModuleKind::linear;
  Presence bias = Presence::never; ///< for linear and conv1d
  Presence weight = Presence::always;
  bool prefixed = true; ///< false: belongs to the head, which has no prefix
  /// Name of the bias, if it does not follow from the module's.
  std::string_view biasName = {};
};

struct SkippedModule {
  std::string_view name;
  std::string_view of = {}; ///< label of the parameter it copies, or empty
  bool prefixed = true;
};

struct WeightFamily {
  std::string_view name, prefix;
  std::string_view layers; ///< prefix of a layer's number: "h."
  /// Old files call the parameters of norms gamma and beta.
  bool greekNorms = false;
  std::vector<WeightModule> modules; ///< those with a `*` are adjacent
  std::vector<SkippedModule> skipped;
};

std::span<const WeightFamily> knownFamilies();

//===----------------------------------------------------------------------===//
// The tensors that a family may have
//===----------------------------------------------------------------------===//

/// A tensor of a file, and whether every file of the family has it.
struct WeightSlot {
  WeightRule rule;
  bool required = true;
};

/// Numbers of layers.
using Layers = std::set<std::int64_t>;

/// Returns 0, 1, ..., count - 1.
Layers layersBelow(std::int64_t count);

/// Returns tensors in the order of Transformers, layer by layer, in which
/// save_pretrained fills its files.
std::vector<WeightSlot> slotsOf(const WeightFamily &family,
                                std::string_view prefix, const Layers &layers);
std::vector<SkippedWeight> skippedOf(const WeightFamily &family,
                                     std::string_view prefix,
                                     const Layers &layers);

/// Returns the family with this name; throws WeightError if there is none.
const WeightFamily &familyCalled(std::string_view name);

/// Returns `text` with the number of a layer for its `*`.
std::string numbered(std::string_view text, std::int64_t layer);

/// Returns "gpt2, gptj, llama, mistral, qwen2 and bert".
std::string familiesText();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_WEIGHTS_FAMILIES_H
