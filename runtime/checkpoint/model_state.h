//===- model_state.h - The state in a checkpoint ----------------*- C++ -*-===//
//
// A checkpoint contains every parameter and its two moments as global tensors.
// Names, files and offsets follow from the plan, but not from its layout.
// Therefore every rank knows the offsets of its shards before anything is
// written. All plans of a model in the same precision have the same offsets.
//
//   h.3.mlp.fc1.weight                 the master weight, or the weight if it
//                                      has no master
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

#include "runtime/executor/rank_coordinates.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::runtime {

enum class StateKind { weight, firstMoment, secondMoment };

struct StateTensor {
  std::string name;
  StateKind kind = StateKind::weight;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< global, without padding
  int file = 0;                    ///< index into ModelState::files
  std::int64_t offset = 0;         ///< bytes from the file's start

  std::int64_t bytes() const;
};

struct StateFile {
  std::string name;
  std::string header;     ///< all bytes before the data, from layOut()
  std::int64_t bytes = 0; ///< size of the file
};

struct ModelState {
  std::vector<StateTensor> tensors; ///< sorted by name
  std::vector<StateFile> files;

  /// Returns the index of the tensor with this name; -1 if there is none.
  int find(std::string_view name) const;
};

std::string safetensorsType(ElementType type);
/// Parses F64, F32, BF16 or F16 as in safetensors. Returns nothing for other
/// names.
std::optional<ElementType> floatNamed(std::string_view word);

/// Returns the name of a parameter's tensor in checkpoints, for layer `copy` of
/// the parameter, counted from 0.
std::string stateName(const Parameter &parameter, int copy, StateKind kind);
/// Returns the global shape of a local tensor, including the plan's padding.
std::vector<std::int64_t> wholeShape(const Plan &plan, const Tensor &tensor);

/// Assigns files and offsets to tensors, which must be sorted by name. Each
/// kind has its own files, of at most 4 GiB unless a single tensor is larger.
ModelState placed(std::vector<StateTensor> tensors);

/// Returns the state of the plan's model.
/// \throws CheckpointError if stages disagree about a tensor's shape or type
ModelState modelStateOf(const Plan &plan);

//===----------------------------------------------------------------------===//
// The slices of a rank
//===----------------------------------------------------------------------===//

/// Describes a box (hyperrectangle) of a tensor, and its location on this rank.
struct StateSlice {
  int tensor = 0;                ///< index into ModelState::tensors
  TensorView view;               ///< the box, with its offset in the tensor
  const Tensor *local = nullptr; ///< the rank's tensor that contains it
  TensorView inLocal;            ///< the box, with its offset in `local`
  int copy = 0;                  ///< layer, from 0 within the parameter

  std::int64_t bytes() const { return view.elements() * bytesOf(view.type); }
};

/// Returns the slices that this rank contributes to a checkpoint. The slices of
/// all ranks cover every element of the state once. A replicated weight is
/// divided like the moments. If the moments are replicated as well, only the
/// first replica contributes.
std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankCoordinates &place);

/// Returns the slices of weights, masters and moments that this rank loads.
std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankCoordinates &place);

/// Divides a box of a tensor into runs: ranges of elements that are contiguous
/// in the box and in the tensor. Runs are in row-major order, which is the same
/// in both. Elements of the box outside the shape `whole` are padding and are
/// skipped.
class BoxRuns {
public:
  BoxRuns(const TensorView &box, const std::vector<std::int64_t> &whole);

  /// Holds the indices of a run's first element.
  struct Start {
    std::int64_t inWhole = 0, inBox = 0;
  };
  std::int64_t count() const { return runs; }
  std::int64_t length() const { return elements; }
  Start at(std::int64_t run) const;
  /// Returns the first run that contains the tensor's element `inWhole` or
  /// begins after it; count() if there is none.
  std::int64_t firstBehind(std::int64_t inWhole) const;

private:
  struct Dimension {
    std::int64_t extent, inWhole, inBox; ///< extent, and strides in elements
  };
  std::vector<Dimension> outer; ///< dimensions that enumerate the runs
  Start first;
  std::int64_t elements = 0, runs = 0;
};

/// Calls visit(first in the tensor, first in the box, elements) for every run.
template <typename Visit>
void forEachRun(const TensorView &box, const std::vector<std::int64_t> &whole,
                Visit visit) {
  const BoxRuns runs(box, whole);
  for (std::int64_t r = 0; r < runs.count(); ++r) {
    const BoxRuns::Start start = runs.at(r);
    visit(start.inWhole, start.inBox, runs.length());
  }
}

/// Calls visit as forEachRun does, for elements [first, first + count) only.
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

/// Copies a slice of the tensor at `local` to a dense array at `to`.
void copySlice(const StateSlice &slice, const std::byte *local, std::byte *to);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_MODEL_STATE_H
