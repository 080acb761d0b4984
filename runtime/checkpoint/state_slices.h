//===- state_slices.h - What one rank has of the whole state ----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_STATE_SLICES_H
#define MTPLAN_RUNTIME_CHECKPOINT_STATE_SLICES_H

#include <algorithm>
#include <vector>

#include "runtime/checkpoint/model_state.h"
#include "runtime/executor/rank_executor.h"

namespace mtplan::runtime {

/// A box of a tensor of the whole state, and where this rank has it.
struct StateSlice {
  int tensor = 0;                ///< of ModelState::tensors
  TensorView view;               ///< with its place in the whole
  const Tensor *local = nullptr; ///< in the rank's arenas
  int copy = 0;
};

/// What this rank writes: of ranks that hold the same, the first. Over all
/// ranks every element of the state is there once.
std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankPlace &place);

/// What this rank needs to go on: also values beside their masters.
std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankPlace &place);

/// Calls visit(first element in the whole, first in the box, elements) for
/// every run of elements that lie together in both, in order. What `whole`
/// does not have is left out: it is padding.
template <typename Visit>
void forEachRun(const TensorView &box, const std::vector<std::int64_t> &whole,
                Visit visit) {
  const std::size_t rank = whole.size();
  std::vector<std::int64_t> extent(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    extent[d] = std::min(box.shape[d], whole[d] - box.pieces[d].offset);
    if (extent[d] <= 0)
      return;
  }
  // Dimensions from `inner` on lie together, and the part of the one before.
  std::size_t inner = rank;
  std::int64_t run = 1;
  while (inner > 0 && extent[inner - 1] == whole[inner - 1] &&
         extent[inner - 1] == box.shape[inner - 1])
    run *= whole[--inner];
  if (inner > 0)
    run *= extent[--inner];
  std::vector<std::int64_t> index(inner, 0);
  for (;;) {
    std::int64_t inWhole = 0, inBox = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t at = d < inner ? index[d] : 0;
      inWhole = inWhole * whole[d] + box.pieces[d].offset + at;
      inBox = inBox * box.shape[d] + at;
    }
    visit(inWhole, inBox, run);
    std::size_t d = inner;
    while (d > 0 && ++index[d - 1] == extent[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_STATE_SLICES_H
