//===- state_slices.h - What one rank has of the whole state ----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_STATE_SLICES_H
#define MTPLAN_RUNTIME_CHECKPOINT_STATE_SLICES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/checkpoint/model_state.h"
#include "runtime/executor/rank_executor.h"

namespace mtplan::runtime {

/// A box of a tensor of the whole state, and where this rank has it.
struct StateSlice {
  int tensor = 0;                ///< of ModelState::tensors
  TensorView view;               ///< with its place in the whole
  const Tensor *local = nullptr; ///< in the rank's arenas
  TensorView inLocal;            ///< the box, with its place in `local`
  int copy = 0;

  std::int64_t bytes() const { return view.elements() * bytesOf(view.type); }
};

/// What this rank writes: of ranks that hold the same, each its share if they
/// split the moments, else the first. Over all ranks every element of the state
/// is there once.
std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankPlace &place);

/// What this rank needs to go on: also values beside their masters.
std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankPlace &place);

/// How a box lies in the whole: as runs of elements that are neighbours in
/// both, in order of both. What `whole` does not have is left out: it is
/// padding.
class BoxRuns {
public:
  BoxRuns(const TensorView &box, const std::vector<std::int64_t> &whole);

  struct Start {
    std::int64_t inWhole = 0, inBox = 0;
  };
  std::int64_t count() const { return runs; }
  std::int64_t length() const { return elements; } ///< of each
  Start at(std::int64_t run) const;
  /// The first that ends behind an element of the whole.
  std::int64_t firstBehind(std::int64_t inWhole) const;

private:
  struct Dimension {
    std::int64_t extent, inWhole, inBox; ///< with strides, in elements
  };
  std::vector<Dimension> outer; ///< that lead from one run to the next
  Start first;
  std::int64_t elements = 0, runs = 0;
};

/// Calls visit(first element in the whole, first in the box, elements) for
/// every run.
template <typename Visit>
void forEachRun(const TensorView &box, const std::vector<std::int64_t> &whole,
                Visit visit) {
  const BoxRuns runs(box, whole);
  for (std::int64_t r = 0; r < runs.count(); ++r) {
    const BoxRuns::Start start = runs.at(r);
    visit(start.inWhole, start.inBox, runs.length());
  }
}

/// The same, of elements [first, first + count) of the whole alone.
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

/// Of the rank's tensor at `local`; slice.bytes() to `to`.
void copySlice(const StateSlice &slice, const std::byte *local, std::byte *to);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_STATE_SLICES_H
