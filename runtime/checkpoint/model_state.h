//===- model_state.h - All that training keeps, whole -----------*- C++ -*-===//
//
// The tensors of a checkpoint: every parameter and its two moments, whole,
// whatever splits them, under names that no layout changes. They follow from
// the plan alone, so every rank knows where each of its pieces lies in which
// file before anything is written, and any two plans of a model agree on names,
// files and bytes.
//
//   h.3.mlp.fc1.weight                 what the update changes: the master's
//                                      type where there is a master
//   h.3.mlp.fc1.weight.first_moment
//   h.3.mlp.fc1.weight.second_moment
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H
#define MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

enum class StateKind { weight, firstMoment, secondMoment };

struct StateTensor {
  std::string name;
  StateKind kind = StateKind::weight;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< global, without padding
  int file = 0;                    ///< of ModelState::files
  std::int64_t offset = 0;         ///< of the file's first byte

  std::int64_t bytes() const;
};

/// A safetensors file.
struct StateFile {
  std::string name;
  std::string header; ///< with its length: the file's first bytes
  std::int64_t bytes = 0;
};

struct ModelState {
  std::vector<StateTensor> tensors; ///< by name
  std::vector<StateFile> files;

  /// Its number; -1 if there is none.
  int find(std::string_view name) const;
};

/// "F32", as safetensors spell it.
std::string safetensorsType(ElementType type);
/// Nothing if it is none of F64, F32, BF16 and F16.
std::optional<ElementType> floatNamed(std::string_view word);

/// The name in checkpoints of what is kept for copy `copy` of a parameter.
std::string stateName(const Parameter &parameter, int copy, StateKind kind);
/// Whole, as `plan` pads it.
std::vector<std::int64_t> wholeShape(const Plan &plan, const Tensor &tensor);

/// "[4, 8]"
std::string shapeWords(const std::vector<std::int64_t> &shape);

/// Gives tensors, which are in order of their names, their files and places: a
/// file of its own for each kind, and a new one before it has more than 4 GiB.
ModelState placed(std::vector<StateTensor> tensors);

/// \throws CheckpointError if two stages have different tensors of one name
ModelState modelStateOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H
