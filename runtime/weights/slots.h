//===- slots.h - The tensors that a family may have -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_WEIGHTS_SLOTS_H
#define MTPLAN_RUNTIME_WEIGHTS_SLOTS_H

#include <set>

#include "runtime/weights/families.h"

namespace mtplan::runtime {

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

#endif // MTPLAN_RUNTIME_WEIGHTS_SLOTS_H
