//===- model_state.h - All that training keeps ------------------*- C++ -*-===//
//
// A checkpoint holds every parameter and its two moments as whole tensors,
// however they are split, under names that do not depend on the layout. Names,
// files and offsets follow from the plan alone. Every rank therefore knows
// where its shards go before anything is written, and any two plans of a model
// agree on names, files and bytes.
//
//   h.3.mlp.fc1.weight                 the weights that the update changes, in
//                                      the master's type if there is a master
//   h.3.mlp.fc1.weight.first_moment
//   h.3.mlp.fc1.weight.second_moment
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H
#define MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executor/rank_place.h"
#include "runtime/plan/plan_queries.h"

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

  /// Returns a tensor's number; -1 if no tensor has this name.
  int find(std::string_view name) const;
};

/// Returns the name of a type in safetensors: "F32".
std::string safetensorsType(ElementType type);
/// Returns the type, or nothing if the word is none of F64, F32, BF16 and F16.
std::optional<ElementType> floatNamed(std::string_view word);

/// Returns the name that a tensor of layer `copy` has in checkpoints.
std::string stateName(const Parameter &parameter, int copy, StateKind kind);
/// Returns the global shape, with the plan's padding.
std::vector<std::int64_t> wholeShape(const Plan &plan, const Tensor &tensor);

/// Assigns files and offsets to tensors, which are in the order of their names.
/// Each kind has files of its own, of at most 4 GiB unless one tensor is
/// larger.
ModelState placed(std::vector<StateTensor> tensors);

/// \throws CheckpointError if two stages have different tensors of one name
ModelState modelStateOf(const Plan &plan);

//===----------------------------------------------------------------------===//
// The pieces of a rank
//===----------------------------------------------------------------------===//

/// A box of a tensor of the whole state, and its place on this rank.
struct StateSlice {
  int tensor = 0;                ///< of ModelState::tensors
  TensorView view;               ///< with its place in the whole
  const Tensor *local = nullptr; ///< in the rank's arenas
  TensorView inLocal;            ///< the box, with its place in `local`
  int copy = 0;

  std::int64_t bytes() const { return view.elements() * bytesOf(view.type); }
};

/// Returns the slices that this rank writes. If several ranks hold the same
/// slice, each writes a share of it if they split the moments; otherwise the
/// first of them writes all. All ranks together have every element of the state
/// once.
std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankPlace &place);

/// Returns the slices that this rank needs to resume, including weights that
/// have masters.
std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankPlace &place);

/// Describes a box of a tensor as runs of elements that are contiguous both in
/// the box and in the whole tensor, in the order of both. Elements that `whole`
/// lacks are padding and left out.
class BoxRuns {
public:
  BoxRuns(const TensorView &box, const std::vector<std::int64_t> &whole);

  struct Start {
    std::int64_t inWhole = 0, inBox = 0;
  };
  std::int64_t count() const { return runs; }
  std::int64_t length() const { return elements; } ///< of every run
  Start at(std::int64_t run) const;
  /// Returns the first run that ends behind an element of the whole.
  std::int64_t firstBehind(std::int64_t inWhole) const;

private:
  struct Dimension {
    std::int64_t extent, inWhole, inBox; ///< with strides, in elements
  };
  std::vector<Dimension> outer; ///< dimensions across runs
  Start first;
  std::int64_t elements = 0, runs = 0;
};

/// Calls visit(first element in the whole, first in the box, elements) for
/// every contiguous run.
template <typename Visit>
void forEachRun(const TensorView &box, const std::vector<std::int64_t> &whole,
                Visit visit) {
  const BoxRuns runs(box, whole);
  for (std::int64_t r = 0; r < runs.count(); ++r) {
    const BoxRuns::Start start = runs.at(r);
    visit(start.inWhole, start.inBox, runs.length());
  }
}

/// Does the same only for elements [first, first + count) of the whole.
template <typename Visit>
void forEachRunWithin(const TensorView &box,
                      const std::vector<std::int64_t> &whole,
                      std::int64_t first, std::int64_t count, Visit visit) {
  const BoxRuns runs(box, whole);
  for (std::int64_t r = runs.firstBehind(first); r < runs.count(); ++r) {
    const BoxRuns::Start start = runs.at(r);
    const std::int64_t from = std::max(start.inWhole, first);
    const std::int64_t to =
        std::min(start.inWhole + runs.length(), first + count);
    if (from >= to)
      return;
    visit(from, start.inBox + from - start.inWhole, to - from);
  }
}

/// Copies a slice, of slice.bytes(), from the rank's tensor at `local` to `to`.
void copySlice(const StateSlice &slice, const std::byte *local, std::byte *to);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H
