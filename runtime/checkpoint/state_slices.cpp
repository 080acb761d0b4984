//===- state_slices.cpp - What one rank has of the whole state ------------===//

#include "runtime/checkpoint/state_slices.h"

#include <cstring>

namespace mtplan::runtime {

namespace {

class Slices {
public:
  Slices(const ModelState &theState, const RankPlace &thePlace)
      : state(theState), place(thePlace) {}

  /// What `box`, split as finely or finer, has of `tensor`.
  void add(const Parameter &parameter, StateKind kind, const Tensor &tensor,
           const Tensor &box) {
    const TensorView held = place.viewOf(tensor);
    TensorView view = place.viewOf(box);
    view.type = tensor.type;
    TensorView inLocal = view;
    for (std::size_t d = 0; d < view.shape.size(); ++d)
      inLocal.pieces[d] = {view.pieces[d].offset - held.pieces[d].offset,
                           held.shape[d]};
    for (int copy = 0; copy < parameter.copies; ++copy)
      slices.push_back({state.find(stateName(parameter, copy, kind)), view,
                        &tensor, inLocal, copy});
  }
  void add(const Parameter &parameter, StateKind kind, const Tensor &tensor) {
    add(parameter, kind, tensor, tensor);
  }

  std::vector<StateSlice> slices;

private:
  const ModelState &state;
  const RankPlace &place;
};

const Stage &stageOf(const Plan &plan, const RankPlace &place) {
  return plan.stages[static_cast<std::size_t>(place.stage())];
}

} // namespace

BoxRuns::BoxRuns(const TensorView &box,
                 const std::vector<std::int64_t> &whole) {
  std::vector<Dimension> all(whole.size());
  std::int64_t wholeStride = 1, boxStride = 1;
  for (std::size_t d = whole.size(); d-- > 0;) {
    const std::int64_t offset = box.pieces[d].offset;
    all[d] = {std::min(box.shape[d], whole[d] - offset), wholeStride,
              boxStride};
    if (all[d].extent <= 0)
      return;
    first.inWhole += offset * wholeStride;
    wholeStride *= whole[d];
    boxStride *= box.shape[d];
  }
  // The last dimensions lie together, and the part of the one before.
  std::size_t inner = whole.size();
  elements = 1;
  while (inner > 0 && all[inner - 1].extent == whole[inner - 1] &&
         all[inner - 1].extent == box.shape[inner - 1])
    elements *= whole[--inner];
  if (inner > 0)
    elements *= all[--inner].extent;
  runs = 1;
  for (std::size_t d = 0; d < inner; ++d)
    runs *= all[d].extent;
  all.resize(inner);
  outer = std::move(all);
}

BoxRuns::Start BoxRuns::at(std::int64_t run) const {
  Start start = first;
  for (std::size_t d = outer.size(); d-- > 0;) {
    const std::int64_t index = run % outer[d].extent;
    run /= outer[d].extent;
    start.inWhole += index * outer[d].inWhole;
    start.inBox += index * outer[d].inBox;
  }
  return start;
}

std::int64_t BoxRuns::firstBehind(std::int64_t inWhole) const {
  std::int64_t low = 0, high = runs;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (at(middle).inWhole + elements > inWhole)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankPlace &place) {
  Slices owned(state, place);
  for (const Parameter &parameter : stageOf(plan, place).parameters) {
    const bool first = std::ranges::all_of(
        parameter.alike, [&](int axis) { return place.placeOn(axis) == 0; });
    if (parameter.countedElsewhere || !first)
      continue;
    // ZeRO 1 and 2 split moments and masters, not values that have no master.
    owned.add(parameter, StateKind::weight,
              parameter.master ? *parameter.master : parameter.value,
              parameter.firstMoment);
    owned.add(parameter, StateKind::firstMoment, parameter.firstMoment);
    owned.add(parameter, StateKind::secondMoment, parameter.secondMoment);
  }
  return std::move(owned.slices);
}

std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankPlace &place) {
  Slices needed(state, place);
  for (const Parameter &parameter : stageOf(plan, place).parameters) {
    needed.add(parameter, StateKind::weight, parameter.value);
    if (parameter.master)
      needed.add(parameter, StateKind::weight, *parameter.master);
    needed.add(parameter, StateKind::firstMoment, parameter.firstMoment);
    needed.add(parameter, StateKind::secondMoment, parameter.secondMoment);
  }
  return std::move(needed.slices);
}

void copySlice(const StateSlice &slice, const std::byte *local, std::byte *to) {
  const std::int64_t size = bytesOf(slice.view.type);
  forEachRun(
      slice.inLocal, slice.local->shape,
      [&](std::int64_t inLocal, std::int64_t inSlice, std::int64_t count) {
        std::memcpy(to + inSlice * size, local + inLocal * size,
                    static_cast<std::size_t>(count * size));
      });
}

} // namespace mtplan::runtime
